/** Panel that stores sentences with their translations, corrected or as they are, in a translation memory. */

import { createMemory, keepSegments, memories } from "./api.js";
import { element } from "./dom.js";
import { showError } from "./error_texts.js";
import { showLabel, showText, text } from "./interface.js";
import { bcp47, languageTitle } from "./language_names.js";
import { store, stored } from "./storage.js";

const KEY = "kvasir-memory"; // id of the memory that translations of this page come from and go to
const NEW = ""; // in place of an id

export class Keeping {
  #place;
  #button;
  #kept;
  #announce;
  #leave;
  #found = [];
  #languages = {};
  #sentences = () => [];

  /**
   * Opens at `place` by `button`. Calls `kept()` when translations were stored, and `leave()` when the panel closes by
   * its own button or Escape.
   */
  constructor(place, button, { kept, leave, announce }) {
    this.#place = place;
    this.#button = button;
    this.#kept = kept;
    this.#leave = leave;
    this.#announce = announce;
    button.addEventListener("click", () => this.#open());
    place.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.close();
      this.#leave();
    });
  }

  /** Id of the memory to translate with, if it is still there. */
  get memory() {
    const id = stored(KEY, NEW);
    return this.#found.some((each) => each.translation_memory_id === id) ? id : null;
  }

  /** Reads which memories there are, on a server that stores any. */
  async read(hasMemories = true) {
    this.#button.hidden = !hasMemories;
    this.#found = hasMemories ? await memories() : [];
  }

  /**
   * Offers a translation from now on. `current()` returns what is shown of it: its text, which has other sentences than
   * the server's where an alternative was chosen, and its `sentences`, `[{ source, target }]`.
   */
  follow({ details }, current, { source, target }) {
    this.#languages = { source, target };
    this.#sentences = () => {
      const { text, sentences } = current();
      const known = details?.memory?.map((each) => ({ source: each.text, target: each.translation }));
      return known?.every((each) => text.includes(each.target)) ? known : sentences;
    };
  }

  close() {
    this.#place.replaceChildren();
    this.#place.hidden = true;
  }

  #open() {
    const [sentences, languages] = [this.#sentences(), this.#languages];
    this.close();
    if (!sentences.length) return;
    const title = element("p", { className: "quiet" });
    showText(title, "keep.title");
    const close = element("button", { type: "button", className: "plain" });
    showText(close, "keep.close");
    close.addEventListener("click", () => {
      this.close();
      this.#leave();
    });
    const rows = sentences.map((sentence) => row(sentence, languages, sentences.length > 1));
    const choice = this.#choice(languages);
    const keep = element("button", { type: "submit", className: "firm" });
    showText(keep, "keep.keep");
    const problem = element("p", { className: "problem", role: "alert", hidden: true });
    const foot = element("div", { className: "keep-foot" }, choice, keep);
    const form = element("form", {}, element("ul", {}, ...rows.map(({ item }) => item)), problem, foot);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      keep.disabled = true;
      try {
        const kept = rows.filter(({ isChosen }) => isChosen()).map(({ segment }) => segment());
        await this.#store(choice.value, kept, languages);
        this.close();
        this.#announce(text("keep.done", { count: kept.length }));
        this.#kept();
      } catch (error) {
        showError(problem, error);
        problem.hidden = false;
        keep.disabled = false;
      }
    });
    this.#place.append(element("header", {}, title, close), form);
    this.#place.hidden = false;
    rows[0].area.focus({ preventScroll: true });
  }

  async #store(id, segments, languages) {
    if (!segments.length) return;
    if (id === NEW) {
      const [source, target] = [languages.source, languages.target].map(languageTitle);
      const name = text("history.pair", { source, target });
      id = (await createMemory(name, languages)).translation_memory_id;
    }
    await keepSegments(id, segments);
    store(KEY, id);
    await this.read();
  }

  #choice({ source }) {
    const select = element("select");
    showLabel(select, "keep.where");
    for (const each of this.#found.filter(({ source_language }) => primary(source_language) === primary(source))) {
      select.append(element("option", { value: each.translation_memory_id }, each.name));
    }
    const added = element("option", { value: NEW });
    showText(added, "keep.new");
    select.append(added);
    select.value = this.memory ?? select.options[0].value;
    if (select.selectedIndex < 0) select.selectedIndex = 0;
    return select;
  }
}

function row({ source, target }, languages, isOneOfSeveral) {
  const original = element("span", { className: "quiet", dir: "auto", lang: bcp47(languages.source) }, source);
  const area = element("textarea", { value: target, required: true, dir: "auto", lang: bcp47(languages.target) });
  area.rows = 1;
  showLabel(area, "output.label");
  const box = element("input", { type: "checkbox", checked: true });
  box.addEventListener("change", () => (area.disabled = !box.checked));
  const label = isOneOfSeveral ? element("label", {}, box, " ", original) : original;
  return {
    area,
    item: element("li", {}, label, area),
    isChosen: () => box.checked,
    segment: () => ({
      source_text: source,
      targets: [{ target_language: languages.target, target_text: area.value.trim() }],
    }),
  };
}

const primary = (tag) => tag.split(/[-_]/)[0].toLowerCase();
