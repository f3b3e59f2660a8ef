/** Which language into which: two choices that know what the server can translate, and their swap. */

import { element } from "./dom.js";

export const AUTO = "auto";
const KEY = "kvasir-languages";
const SURE = 0.7; // confidence from which a detected language is stated as such

const names = new Intl.DisplayNames(["en"], { type: "language" });

export function languageName(tag) {
  try {
    return names.of(tag.replaceAll("_", "-")) ?? tag;
  } catch {
    return tag; // no tag of BCP 47
  }
}

export class Languages extends EventTarget {
  #source;
  #target;
  #swap;
  #pairs = [];
  #detects = false;
  #found = null; // what was detected, and how surely

  /** Says "change" when people have chosen, "swap" when the two are to change places. */
  constructor(source, target, swap) {
    super();
    this.#source = source;
    this.#target = target;
    this.#swap = swap;
    source.addEventListener("change", () => this.#chosen());
    target.addEventListener("change", () => this.#chosen());
    swap.addEventListener("click", () => this.dispatchEvent(new Event("swap")));
  }

  /** What the server can, anew; what was chosen stays if it still can be. */
  offer({ pairs, detects }) {
    const [source, target] = this.#source.disabled ? kept() : [this.#source.value, this.#target.value];
    const sources = unique(pairs.map((pair) => pair.source));
    this.#pairs = pairs;
    this.#detects = detects && sources.length > 1;
    fill(this.#source, this.#detects ? [AUTO, ...sources] : sources, source);
    this.#source.disabled = this.#target.disabled = !pairs.length;
    this.detected(sources.includes(this.#found?.language) ? this.#found : null);
    this.#fillTargets(target);
  }

  get source() {
    return this.#source.value;
  }

  get target() {
    return this.#target.value;
  }

  /** What is read, chosen or detected; null if it is not known. */
  get readLanguage() {
    return this.source === AUTO ? (this.#found?.language ?? null) : this.source;
  }

  get isReady() {
    return this.#pairs.length > 0;
  }

  /** The pair that is translated, if it is known; `pivot` is the language in between, or null. */
  get pair() {
    return this.#pairOf(this.readLanguage, this.target) ?? null;
  }

  /** What the server took the text for; null when there is no text. */
  detected(found) {
    this.#found = found;
    const auto = this.#source.querySelector(`option[value="${AUTO}"]`);
    if (auto) {
      const doubt = found && found.confidence < SURE ? "perhaps " : "";
      auto.textContent = found ? `${languageName(found.language)} (${doubt}detected)` : "Detect language";
    }
    this.#showSwap();
  }

  swap() {
    const [source, target] = [this.target, this.readLanguage];
    this.#source.value = source;
    this.#fillTargets(target);
    keep(this.source, this.target);
  }

  #chosen() {
    if (this.source !== AUTO) this.detected(null);
    this.#fillTargets(this.target);
    keep(this.source, this.target);
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

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}

function keep(source, target) {
  try {
    localStorage.setItem(KEY, JSON.stringify([source, target]));
  } catch {
    // Chosen for this visit only.
  }
}
