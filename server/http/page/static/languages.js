/** Selection of source and target language, restricted to the server's pairs, and their swap. */

import { element } from "./dom.js";

export const AUTO = "auto";
const KEY = "kvasir-languages";
const SURE = 0.7; // minimum confidence of a detected language shown without "perhaps"

const names = new Intl.DisplayNames(["en"], { type: "language" });

export function languageName(tag) {
  try {
    return names.of(tag.replaceAll("_", "-")) ?? tag;
  } catch {
    return tag; // not a BCP 47 tag
  }
}

export class Languages extends EventTarget {
  #source;
  #target;
  #swap;
  #pairs = [];
  #detects = false;
  #detected = null; // { language, confidence }

  /** Dispatches "change" after a selection and "swap" after a click on the swap button. */
  constructor(source, target, swap) {
    super();
    this.#source = source;
    this.#target = target;
    this.#swap = swap;
    source.addEventListener("change", () => this.#onChange());
    target.addEventListener("change", () => this.#onChange());
    swap.addEventListener("click", () => this.dispatchEvent(new Event("swap")));
  }

  /** Offers the server's pairs; keeps the selection if it is still among them. */
  offer({ pairs, detects }) {
    const [source, target] = this.#source.disabled ? stored() : [this.#source.value, this.#target.value];
    const sources = unique(pairs.map((pair) => pair.source));
    this.#pairs = pairs;
    this.#detects = detects && sources.length > 1;
    fill(this.#source, this.#detects ? [AUTO, ...sources] : sources, source);
    this.#source.disabled = this.#target.disabled = !pairs.length;
    this.showDetected(sources.includes(this.#detected?.language) ? this.#detected : null);
    this.#fillTargets(target);
  }

  get source() {
    return this.#source.value;
  }

  get target() {
    return this.#target.value;
  }

  /** The source language, selected or detected; null if unknown. */
  get readLanguage() {
    return this.source === AUTO ? (this.#detected?.language ?? null) : this.source;
  }

  get isReady() {
    return this.#pairs.length > 0;
  }

  /** The selected pair, or null if its source is unknown; `pivot` is the language in between, or null. */
  get pair() {
    return this.#pairOf(this.readLanguage, this.target) ?? null;
  }

  /** Shows the detected language; null without text. */
  showDetected(detected) {
    this.#detected = detected;
    const auto = this.#source.querySelector(`option[value="${AUTO}"]`);
    if (auto) {
      const doubt = detected && detected.confidence < SURE ? "perhaps " : "";
      auto.textContent = detected ? `${languageName(detected.language)} (${doubt}detected)` : "Detect language";
    }
    this.#showSwap();
  }

  swap() {
    const [source, target] = [this.target, this.readLanguage];
    this.#source.value = source;
    this.#fillTargets(target);
    store(this.source, this.target);
  }

  #onChange() {
    if (this.source !== AUTO) this.showDetected(null);
    this.#fillTargets(this.target);
    store(this.source, this.target);
    this.dispatchEvent(new Event("change"));
  }

  #fillTargets(wanted) {
    const possible = this.#pairs.filter((pair) => this.source === AUTO || pair.source === this.source);
    fill(this.#target, unique(possible.map((pair) => pair.target)), wanted);
    this.#showSwap();
  }

  #showSwap() {
    const back = this.readLanguage && this.#pairOf(this.target, this.readLanguage);
    this.#swap.disabled = !back;
    this.#swap.title =
      back || !this.readLanguage
        ? "Swap the languages"
        : `No model here translates ${languageName(this.target)} into ${languageName(this.readLanguage)}`;
  }

  #pairOf(source, target) {
    return this.#pairs.find((pair) => pair.source === source && pair.target === target);
  }
}

function fill(select, tags, wanted) {
  const options = tags.map((tag) =>
    element("option", { value: tag }, tag === AUTO ? "Detect language" : languageName(tag)),
  );
  const first = tags[0] === AUTO ? options.splice(0, 1) : [];
  options.sort((one, other) => one.textContent.localeCompare(other.textContent, "en"));
  select.replaceChildren(...first, ...options);
  select.value = tags.includes(wanted) ? wanted : (tags[0] ?? "");
}

const unique = (tags) => [...new Set(tags)];

function stored() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}

function store(source, target) {
  try {
    localStorage.setItem(KEY, JSON.stringify([source, target]));
  } catch {
    // Storage is disabled: the selection lasts for this visit.
  }
}
