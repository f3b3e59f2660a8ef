/** Texts of the page in the language of the interface. Elements follow when the language changes. */

import de from "./texts_de.js";
import en from "./texts_en.js";
import es from "./texts_es.js";
import fr from "./texts_fr.js";
import { store, stored } from "./storage.js";

const KEY = "kvasir-interface";
const TEXTS = { en, de, es, fr };
const SLOTS = {
  text: (node, text) => (node.textContent = text),
  label: (node, text) => (node.ariaLabel = text),
  title: (node, text) => (node.title = text),
  placeholder: (node, text) => (node.placeholder = text),
};
const SHOWN = "[data-text], [data-label], [data-title], [data-placeholder], [data-render]";

const renderers = new WeakMap(); // element -> { slot: function that shows the text }
let language = [stored(KEY, ""), ...navigator.languages.map((tag) => tag.split("-")[0]), "en"].find((tag) => tag in TEXTS);

/** Dispatches "change" after the language of the interface changed. */
export const interfaceChanges = new EventTarget();

export const interfaceLanguage = () => language;

export function setInterfaceLanguage(tag) {
  language = tag;
  store(KEY, tag);
  showAll();
  interfaceChanges.dispatchEvent(new Event("change"));
}

/** Returns a text. `values` fill its {placeholders}; functions are called, numbers are formatted, `count` selects the plural form. */
export function text(key, values = {}) {
  const entry = TEXTS[language][key];
  const forms = typeof entry === "string" ? { other: entry } : entry;
  const form = forms[new Intl.PluralRules(language).select(current(values.count ?? 0))] ?? forms.other;
  return form.replace(/\{(\w+)\}/g, (_, name) => {
    const value = current(values[name]);
    return typeof value === "number" ? formatted(value) : value;
  });
}

export const formatted = (number, options) => new Intl.NumberFormat(language, options).format(number);

export const showText = (node, key, values) => show(node, "text", key, values);
export const showLabel = (node, key, values) => show(node, "label", key, values);
export const showTitle = (node, key, values) => show(node, "title", key, values);

/** Removes the text of an element. */
export function clearText(node) {
  delete node.dataset.text;
  delete node.dataset.render;
  node.textContent = "";
}

/** Calls `render` now and after each change of the language, as long as `node` is in the page. */
export function showRendered(node, render) {
  node.dataset.render = "";
  renderers.set(node, { ...renderers.get(node), render });
  render();
}

/** Shows the texts of all elements, among them those that the HTML names by data-text, data-label and so on. */
export function showAll() {
  document.documentElement.lang = language;
  for (const node of document.querySelectorAll(SHOWN)) {
    for (const slot of Object.keys(SLOTS)) {
      if (slot in node.dataset) (renderers.get(node)?.[slot] ?? (() => SLOTS[slot](node, text(node.dataset[slot]))))();
    }
    if ("render" in node.dataset) renderers.get(node).render();
  }
}

function show(node, slot, key, values) {
  if (slot === "text") delete node.dataset.render;
  node.dataset[slot] = key;
  const render = () => SLOTS[slot](node, text(key, values));
  renderers.set(node, { ...renderers.get(node), [slot]: render });
  render();
}

const current = (value) => (typeof value === "function" ? value() : value);
