/** Translations kept in this browser, the last one first. */

import { store, stored } from "./storage.js";

const KEY = "kvasir-history";
const KEY_OFF = "kvasir-history-off";
const MAX_ENTRIES = 100;
const MAX_CHARACTERS = 5000; // longer texts are not kept: a browser stores some five million characters in all
const REST_MS = 1500; // without a change, before a translation is kept

export class TranslationHistory extends EventTarget {
  #pending = null;
  #timer = null;
  #last = null; // entry of the text that is being written

  /** Dispatches "change" when entries or the setting change, in this window or another one. */
  constructor() {
    super();
    addEventListener("pagehide", () => this.flush());
    addEventListener("storage", ({ key }) => key?.startsWith(KEY) && this.#changed());
  }

  get isOn() {
    return !stored(KEY_OFF, false);
  }

  /** Switching the history off deletes it. */
  set isOn(isOn) {
    store(KEY_OFF, !isOn);
    if (isOn) this.#changed();
    else this.clear();
  }

  /** Entries are `{ source, target, text, translation }`. */
  get entries() {
    const entries = stored(KEY, []);
    return Array.isArray(entries) ? entries.filter(isEntry) : [];
  }

  /** Keeps a translation once it has rested. Later versions of the same text replace it. */
  add(entry) {
    clearTimeout(this.#timer);
    this.#pending = entry;
    this.#timer = setTimeout(() => this.flush(), REST_MS);
  }

  /** Keeps the pending translation now. */
  flush() {
    clearTimeout(this.#timer);
    const entry = this.#pending;
    this.#pending = null;
    if (!entry || !this.isOn || entry.text.length > MAX_CHARACTERS || entry.translation.length > MAX_CHARACTERS) return;
    const replaced = this.#last && isVersion(entry, this.#last) ? this.#last : entry;
    this.#last = entry;
    this.#write([entry, ...this.entries.filter((each) => !isEqual(each, replaced) && !isEqual(each, entry))]);
  }

  /** Keeps the pending translation; what follows is another text. */
  next() {
    this.flush();
    this.#last = null;
  }

  /** Drops the pending translation: its text was changed before it had rested. */
  cancel() {
    clearTimeout(this.#timer);
    this.#pending = null;
  }

  delete(entry) {
    this.#write(this.entries.filter((each) => !isEqual(each, entry)));
  }

  clear() {
    this.cancel();
    this.#last = null;
    this.#write([]);
  }

  #write(entries) {
    store(KEY, entries.slice(0, MAX_ENTRIES));
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

const FIELDS = ["source", "target", "text", "translation"];
const isEntry = (entry) => FIELDS.every((field) => typeof entry?.[field] === "string");
const isEqual = (one, other) => ["source", "target", "text"].every((field) => one[field] === other[field]);

/** Whether one text is the beginning of the other, as while typing, in the same target language. */
function isVersion(one, other) {
  const [shorter, longer] = [one.text, other.text].sort((a, b) => a.length - b.length);
  return one.target === other.target && longer.startsWith(shorter.trimEnd());
}
