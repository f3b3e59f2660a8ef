/* Light or dark theme, set before the first paint. A classic script, because modules run later. */
(() => {
  "use strict";
  const KEY = "kvasir-theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  const stored = (() => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is disabled: use the system's theme
    }
  })();
  if (stored === "light" || stored === "dark") root.dataset.theme = stored;

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
        // Storage is disabled: the theme lasts for this visit.
      }
      show();
    });
  });
})();
