/** Panel with the history: entries to open or delete, and its settings. */

import { byId, element } from "./dom.js";
import { interfaceChanges, showLabel, showText, showTitle, text } from "./interface.js";
import { bcp47, languageTitle } from "./language_names.js";

export class HistoryPanel {
  #elements = {
    panel: byId("history-panel"),
    list: byId("history-list"),
    state: byId("history-state"),
    keep: byId("history-keep"),
    clear: byId("history-clear"),
    close: byId("history-close"),
  };
  #history;
  #open;

  /** `open(entry)` shows an entry in the panes. */
  constructor(history, open) {
    this.#history = history;
    this.#open = open;
    const { panel, state, keep, clear, close } = this.#elements;
    byId("history").addEventListener("click", () => {
      history.flush();
      this.#fill();
      panel.showModal();
    });
    close.addEventListener("click", () => panel.close());
    panel.addEventListener("click", (event) => event.target === panel && panel.close()); // a click outside the panel
    keep.addEventListener("change", () => (history.isOn = keep.checked));
    clear.addEventListener("click", () => {
      history.clear();
      showText(state, "history.cleared");
      close.focus();
    });
    history.addEventListener("change", () => panel.open && this.#fill());
    interfaceChanges.addEventListener("change", () => panel.open && this.#fill());
  }

  #fill() {
    const { list, state, keep, clear } = this.#elements;
    const { entries, isOn } = this.#history;
    keep.checked = isOn;
    clear.disabled = !entries.length;
    list.replaceChildren(...entries.map((entry) => this.#item(entry)));
    state.hidden = entries.length > 0;
    showText(state, isOn ? "history.empty" : "history.off");
  }

  #item(entry) {
    const [source, target] = [entry.source, entry.target].map(languageTitle);
    const open = element(
      "button",
      { type: "button", className: "entry" },
      element("span", { className: "quiet" }, text("history.pair", { source, target })),
      element("span", { className: "extract", lang: bcp47(entry.source), dir: "auto" }, entry.text),
      element("span", { className: "extract", lang: bcp47(entry.target), dir: "auto" }, entry.translation),
    );
    open.addEventListener("click", () => {
      this.#elements.panel.close();
      this.#open(entry);
    });
    const remove = element("button", { type: "button", className: "plain icon" }, "×");
    showLabel(remove, "history.delete");
    showTitle(remove, "history.delete");
    remove.addEventListener("click", () => {
      this.#history.delete(entry);
      this.#elements.close.focus();
    });
    return element("li", {}, open, remove);
  }
}
