/**
 * Button that opens a searchable list of languages: the combobox pattern with a list box in a pop-up,
 * https://www.w3.org/WAI/ARIA/apg/patterns/combobox/.
 */

import { element } from "./dom.js";
import { interfaceChanges, interfaceLanguage, showLabel, showText, text } from "./interface.js";
import { AUTO, bcp47, languageTitle, ownName } from "./language_names.js";
import { matching } from "./language_search.js";
import { recentLanguages } from "./recent_languages.js";

const FEW = 8; // languages that need no headings
const PAGE = 8; // options that Page Up and Page Down move by

export class LanguagePicker extends EventTarget {
  #button;
  #side;
  #label;
  #tags = [];
  #popup = null; // while the list is open: { root, search, list, count, options, active }

  /** `side` is "source" or "target", `label` the key of its name. Dispatches "change" when the user chose. */
  constructor(button, side, label) {
    super();
    this.#button = button;
    this.#side = side;
    this.#label = label;
    button.addEventListener("click", () => (this.#popup ? this.#close() : this.#open()));
    button.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      this.#open();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!button.parentElement.contains(event.target)) this.#close();
    });
    interfaceChanges.addEventListener("change", () => this.#close());
  }

  get value() {
    return this.#button.value;
  }

  set value(tag) {
    this.#button.value = tag;
    showText(this.#button, tag === AUTO ? "languages.detect" : "languages.name", { language: () => languageTitle(tag) });
  }

  get tags() {
    return this.#tags;
  }

  /** Offers these languages, in any order; `AUTO` is always the first. */
  offer(tags) {
    this.#tags = tags;
    this.#button.disabled = !tags.length;
    if (!tags.length) this.#close();
    else if (this.#popup) this.#fill();
  }

  /** Shows another text on the button than the name of the language. */
  show(key, values) {
    showText(this.#button, key, values);
  }

  /** Draws attention to a language that changed without the user. */
  flash() {
    this.#button.classList.remove("changed");
    void this.#button.offsetWidth; // restarts the animation
    this.#button.classList.add("changed");
    setTimeout(() => this.#button.classList.remove("changed"), 2500);
  }

  #open() {
    if (this.#popup || this.#button.disabled) return;
    const id = this.#button.id;
    const search = element("input", { type: "text", inputMode: "search", className: "search", autocomplete: "off", spellcheck: false });
    search.id = `${id}-search`;
    for (const [name, value] of [["role", "combobox"], ["aria-expanded", "true"], ["aria-autocomplete", "list"]]) {
      search.setAttribute(name, value);
    }
    search.setAttribute("aria-controls", `${id}-list`);
    search.placeholder = text("languages.search");
    showLabel(search, this.#label);
    const list = element("div", { id: `${id}-list`, className: "options", role: "listbox", tabIndex: -1 });
    showLabel(list, this.#label);
    const count = element("p", { className: "none quiet", role: "status" });
    const root = element("div", { className: "picker" }, search, list, count);
    this.#popup = { root, search, list, count, options: [], active: -1 };
    this.#button.after(root);
    this.#button.ariaExpanded = "true";
    search.addEventListener("input", () => this.#fill());
    search.addEventListener("keydown", (event) => this.#onKey(event));
    // The search field keeps the focus, so that typing and arrow keys continue to work.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => this.#choose(event.target.closest("[role=option]")?.dataset.tag));
    root.addEventListener("focusout", (event) => {
      if (!this.#button.parentElement.contains(event.relatedTarget)) this.#close();
    });
    this.#fill();
    search.focus({ preventScroll: true });
  }

  #close() {
    if (!this.#popup) return;
    const { root } = this.#popup;
    this.#popup = null;
    this.#button.ariaExpanded = "false";
    root.remove();
  }

  #choose(tag) {
    if (!tag) return;
    const isChange = tag !== this.value;
    this.value = tag;
    this.#button.focus();
    this.#close();
    this.dispatchEvent(new CustomEvent("change", { detail: { isChange } }));
  }

  #fill() {
    const { search, list, count } = this.#popup;
    const query = search.value.trim();
    const named = this.#tags.filter((tag) => tag !== AUTO);
    const byName = new Intl.Collator(interfaceLanguage());
    named.sort((one, other) => byName.compare(languageTitle(one), languageTitle(other)));
    const groups = query ? [["", matching(query, named)]] : this.#groups(named);
    const options = groups.flatMap(([, tags]) => tags);
    this.#popup.options = [];
    list.replaceChildren(...groups.filter(([, tags]) => tags.length).map(([title, tags]) => this.#group(title, tags)));
    list.hidden = !options.length;
    search.ariaExpanded = String(options.length > 0);
    count.classList.toggle("unseen", options.length > 0);
    showText(count, options.length ? "languages.found" : "languages.none", { count: options.length });
    const chosen = options.indexOf(this.value);
    this.#activate(query || chosen < 0 ? 0 : chosen);
  }

  #groups(named) {
    const recent = [...new Set([this.value, ...recentLanguages(this.#side)])].filter((tag) => named.includes(tag));
    const others = named.filter((tag) => !recent.includes(tag));
    const first = this.#tags.includes(AUTO) ? [["", [AUTO]]] : [];
    if (named.length <= FEW || !recent.length) return [...first, ["", [...recent, ...others]]];
    return [...first, ["languages.recent", recent], ["languages.all", others]];
  }

  #group(title, tags) {
    const options = tags.map((tag) => this.#option(tag));
    const group = element("div", { role: "group" });
    if (title) {
      const heading = element("p", { className: "quiet", ariaHidden: "true" });
      showText(heading, title);
      showLabel(group, title);
      group.append(heading);
    }
    group.append(...options);
    return group;
  }

  #option(tag) {
    const number = this.#popup.options.length;
    const option = element("div", { id: `${this.#button.id}-${number}`, className: "language-option", role: "option" });
    option.dataset.tag = tag;
    option.ariaSelected = String(tag === this.value);
    const [name, own] = tag === AUTO ? [text("languages.detect"), ""] : [languageTitle(tag), ownName(tag)];
    option.append(element("span", {}, name));
    if (own && own !== name) option.append(element("span", { className: "quiet", lang: bcp47(tag), dir: "auto" }, own));
    this.#popup.options.push(option);
    return option;
  }

  #activate(index) {
    const { options, search } = this.#popup;
    this.#popup.active = Math.max(0, Math.min(index, options.length - 1));
    for (const [number, option] of options.entries()) option.classList.toggle("active", number === this.#popup.active);
    const active = options[this.#popup.active];
    search.setAttribute("aria-activedescendant", active?.id ?? "");
    active?.scrollIntoView({ block: "nearest" });
  }

  #onKey(event) {
    const { options, active } = this.#popup;
    const goals = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + PAGE, PageUp: active - PAGE };
    if (event.isComposing) return;
    if (event.key in goals) {
      const isPage = event.key.startsWith("Page");
      this.#activate(isPage ? goals[event.key] : (goals[event.key] + options.length) % Math.max(options.length, 1));
    } else if (event.key === "Enter") {
      this.#choose(options[active]?.dataset.tag);
    } else if (event.key === "Escape" || event.key === "Tab") {
      this.#button.focus();
      this.#close();
      if (event.key === "Tab") return; // to the control next to the button
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
