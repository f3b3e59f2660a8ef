/** Source and target language: the selection, its restriction to the server's pairs, and the swap. */

import { interfaceChanges, interfaceLanguage, showTitle } from "./interface.js";
import { AUTO, bcp47, languageName, languageTitle, readMissingNames } from "./language_names.js";
import { recentLanguages, rememberLanguage } from "./recent_languages.js";
import { store, stored } from "./storage.js";

const KEY = "kvasir-languages";
const SURE = 0.7; // minimum confidence of a detected language shown without "perhaps"

export class Languages extends EventTarget {
  #source;
  #target;
  #swap;
  #pairs = [];
  #detected = null; // { language, confidence }
  #insisted = null; // target that the user chose although the text is in it

  /** Gets two pickers and a button. Dispatches "change" after a selection and "swap" after a click on the button. */
  constructor(source, target, swap) {
    super();
    this.#source = source;
    this.#target = target;
    this.#swap = swap;
    source.addEventListener("change", ({ detail }) => detail.isChange && this.#onSource());
    target.addEventListener("change", ({ detail }) => detail.isChange && this.#onTarget());
    swap.addEventListener("click", () => this.dispatchEvent(new Event("swap")));
    interfaceChanges.addEventListener("change", () => this.#readNames());
  }

  /** Offers the server's pairs. The selection is the current one, else `wanted`, else that of the last visit. */
  offer(pairs, wanted) {
    const kept = stored(KEY, []);
    const before = this.isReady ? [this.source, this.target] : (wanted ?? (Array.isArray(kept) ? kept : []));
    this.#pairs = pairs;
    const sources = unique(pairs.map((pair) => pair.source));
    this.#source.offer(sources.length > 1 ? [AUTO, ...sources] : sources);
    this.choose(...before);
    this.#readNames();
    if (!sources.includes(this.#detected?.language)) this.showDetected(null);
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

  /** Selects two languages as far as the server has them. */
  choose(source, target) {
    const sources = this.#source.tags;
    const wanted = sources.find((tag) => isSame(tag, source));
    this.#source.value = wanted ?? (sources.includes(AUTO) ? AUTO : (sources[0] ?? ""));
    this.#offerTargets(target);
    this.#insisted = null;
    this.showDetected(this.#detected);
  }

  /** Shows the detected language; null without text. */
  showDetected(detected) {
    this.#detected = detected;
    if (!detected) this.#insisted = null;
    if (this.source === AUTO && detected) {
      const key = detected.confidence < SURE ? "languages.perhaps" : "languages.detected";
      this.#source.show(key, { language: () => languageTitle(detected.language) });
    } else {
      this.#source.value = this.source;
    }
    this.#showSwap();
  }

  /** Changes the target if a text in `language` has no translation into it. Returns whether it changed. */
  leave(language) {
    const isSameLanguage = this.source === AUTO && primary(language) === primary(this.target);
    if (!isSameLanguage) this.#insisted = null;
    const other = isSameLanguage && this.#insisted !== this.target ? this.#otherTarget(language) : null;
    if (!other) return false;
    this.#target.value = other;
    this.#target.flash();
    this.#keep();
    return true;
  }

  /** Remembers the languages of a translation as recent ones. */
  used() {
    if (this.readLanguage) rememberLanguage("source", this.readLanguage);
    rememberLanguage("target", this.target);
  }

  swap() {
    const [source, target] = [this.target, this.#swappedTarget()];
    if (!target) return;
    this.#source.value = source;
    this.#offerTargets(target);
    this.#keep();
  }

  #onSource() {
    this.showDetected(this.source === AUTO ? this.#detected : null);
    this.#offerTargets(this.target);
    if (this.source !== AUTO) rememberLanguage("source", this.source);
    this.#onChange();
  }

  #onTarget() {
    const isInTarget = this.source === AUTO && this.#detected && primary(this.#detected.language) === primary(this.target);
    this.#insisted = isInTarget ? this.target : null;
    rememberLanguage("target", this.target);
    this.#onChange();
  }

  #onChange() {
    this.#keep();
    this.#showSwap();
    this.dispatchEvent(new Event("change"));
  }

  #offerTargets(wanted) {
    const targets = this.#targetsOf(this.source);
    this.#target.offer(targets);
    const kept = targets.find((tag) => isSame(tag, wanted));
    this.#target.value = kept ?? this.#preferred(targets) ?? "";
    this.#showSwap();
  }

  #targetsOf(source) {
    return unique(this.#pairs.filter((pair) => source === AUTO || pair.source === source).map((pair) => pair.target));
  }

  #otherTarget(language) {
    return this.#preferred(this.#targetsOf(language).filter((tag) => primary(tag) !== primary(language)));
  }

  /** Returns the target used last, else one in a language of the browser, else the first by name. */
  #preferred(targets) {
    const spoken = [interfaceLanguage(), ...navigator.languages];
    const byName = [...targets].sort((one, other) => languageName(one).localeCompare(languageName(other)));
    return (
      recentLanguages("target").find((tag) => targets.includes(tag)) ??
      spoken.map((tag) => byName.find((target) => primary(target) === primary(tag))).find(Boolean) ??
      byName[0]
    );
  }

  #swappedTarget() {
    if (this.readLanguage) return this.#pairOf(this.target, this.readLanguage) ? this.readLanguage : null;
    return this.#otherTarget(this.target) ?? null; // no text yet: nothing is detected
  }

  #showSwap() {
    const isPossible = Boolean(this.#swappedTarget());
    this.#swap.disabled = !isPossible;
    const [source, target] = [this.readLanguage, this.target];
    if (isPossible || !source) showTitle(this.#swap, "languages.swap");
    else {
      const names = { source: () => languageName(source), target: () => languageName(target) };
      showTitle(this.#swap, "languages.noWayBack", names);
    }
  }

  #pairOf(source, target) {
    return this.#pairs.find((pair) => pair.source === source && pair.target === target);
  }

  #readNames() {
    readMissingNames(unique(this.#pairs.flatMap(({ source, target }) => [source, target])));
  }

  #keep() {
    store(KEY, [this.source, this.target]);
  }
}

const unique = (tags) => [...new Set(tags)];
const primary = (tag) => bcp47(tag).split("-")[0].toLowerCase();
const isSame = (tag, wanted) => typeof wanted === "string" && bcp47(tag).toLowerCase() === bcp47(wanted).toLowerCase();
