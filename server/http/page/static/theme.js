/* Light or dark, before anything is painted. A classic script: modules come too late for that. */
(() => {
  "use strict";
  const KEY = "kvasir-theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  const kept = (() => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is switched off: the system's choice it is
    }
  })();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    show();
    system.addEventListener("change", show);
    button.addEventListener("click", () => {
      const chosen = isDark() ? "light" : "dark";
      root.dataset.theme = chosen;
      try {
        localStorage.setItem(KEY, chosen);
      } catch {
        // It holds for this visit.
      }
      show();
    });
  });
})();
