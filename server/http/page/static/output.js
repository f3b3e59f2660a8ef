/** The translation: text while it streams, then words that react to pointer and keyboard. */

import { words } from "./word_alignment.js";
import { element, wrapped } from "./dom.js";
import { showTitle } from "./interface.js";

const LONG = 320; // as in source_text.js

export class Output extends EventTarget {
  #place;
  #pairs = [];
  #language = "";
  #words = []; // [{ node, pair, range }], in the order of the text
  #current = -1; // index of the word selected by keyboard
  text = "";

  /** Dispatches "point" with `{ pair, range }` or null, and "choose" with `{ pair, range }`, as `detail`. */
  constructor(place) {
    super();
    this.#place = place;
    place.addEventListener("pointerover", (event) => this.#pointAt(this.#wordOf(event.target)));
    place.addEventListener("pointerleave", () => this.#pointAt(null));
    place.addEventListener("blur", () => this.#goTo(-1));
    place.addEventListener("click", (event) => {
      if (getSelection().isCollapsed) this.#choose(this.#wordOf(event.target));
    });
    place.addEventListener("keydown", (event) => this.#onKey(event));
  }

  set language(tag) {
    this.#language = tag;
    this.#place.lang = tag;
  }

  clear() {
    this.text = "";
    this.#forget();
    this.#place.replaceChildren();
  }

  /** Shows the text so far. The rest of the previous translation stays, faintly, so that the layout does not jump. */
  grow(text) {
    const stale = this.text.slice(text.length);
    this.#forget();
    this.#place.replaceChildren(text, element("span", { className: "stale" }, stale));
    this.#fit(Math.max(text.length, this.text.length));
  }

  /** Marks the translation as outdated. */
  fade() {
    this.#forget();
    this.#place.replaceChildren(element("span", { className: "stale" }, this.text));
  }

  /** Shows the complete translation. `pairs` come from `sentencePairs` and `markDoubts`. */
  settle(text, pairs) {
    this.text = text;
    this.#forget();
    this.#pairs = pairs;
    const ranges = pairs.map((pair) => ({
      begin: pair.target[0],
      end: pair.target[1],
      wrap: (sentence) => this.#sentence(sentence, pair),
    }));
    this.#place.replaceChildren(...wrapped(text, ranges));
    this.#fit(text.length);
  }

  /** Replaces the translation of one sentence. */
  replace(pair, sentence) {
    const [begin, end] = pair.target;
    const longer = sentence.length - (end - begin);
    for (const each of this.#pairs) {
      if (each.target[0] >= end) each.target = each.target.map((place) => place + longer);
    }
    pair.target = [begin, begin + sentence.length];
    delete pair.quality; // it was that of the other translation
    this.settle(this.text.slice(0, begin) + sentence + this.text.slice(end), this.#pairs);
  }

  /** Returns the sentences of a source text with their translations as they are shown, `{ source, target }`. */
  sentences(source) {
    return this.#pairs.map((pair) => ({ source: source.slice(...pair.source), target: this.text.slice(...pair.target) }));
  }

  /** Highlights one word, or none. */
  highlight(range, pair) {
    for (const { node, ...word } of this.#words) {
      node.classList.toggle("glow", word.pair === pair && word.range === range);
    }
  }

  /** The word selected by keyboard, else the first: the default place for alternatives. */
  get place() {
    return this.#words[Math.max(this.#current, 0)] ?? null;
  }

  focus() {
    this.#place.focus();
  }

  #sentence(sentence, pair) {
    const node = element("span", {}, ...this.#spans(sentence, pair));
    if (pair.quality !== undefined) {
      node.className = "doubtful";
      showTitle(node, "output.doubtful", { percent: Math.round(100 * pair.quality) });
    }
    return node;
  }

  #spans(sentence, pair) {
    const doubted = pair.quality === undefined ? [] : pair.doubted;
    return wrapped(
      sentence,
      words(sentence, this.#language).map((range) => ({
        begin: range[0],
        end: range[1],
        wrap: (text) => {
          const isDoubted = doubted.some(([begin, end]) => begin < range[1] && range[0] < end);
          const node = element("span", { className: isDoubted ? "word doubted" : "word" }, text);
          this.#words.push({ node, pair, range });
          return node;
        },
      })),
    );
  }

  #forget() {
    this.#words = [];
    this.#pairs = [];
    this.#goTo(-1);
  }

  #fit(length) {
    this.#place.classList.toggle("long", length > LONG);
  }

  #wordOf(node) {
    return this.#words.find((word) => word.node === node) ?? null;
  }

  #pointAt(word) {
    this.dispatchEvent(new CustomEvent("point", { detail: word }));
  }

  #choose(word) {
    if (word) this.dispatchEvent(new CustomEvent("choose", { detail: word }));
  }

  #goTo(index) {
    if (index === this.#current) return;
    this.#current = index;
    this.#pointAt(this.#words[index] ?? null);
    this.#words[index]?.node.scrollIntoView({ block: "nearest" });
  }

  #onKey(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === "a") {
      getSelection().selectAllChildren(this.#place);
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !this.#words.length) return;
    const isRightToLeft = getComputedStyle(this.#place).direction === "rtl";
    const last = this.#words.length - 1;
    const next = Math.min(this.#current + 1, last);
    const previous = Math.max(this.#current - 1, 0);
    const goals = {
      ArrowRight: isRightToLeft ? previous : next,
      ArrowLeft: isRightToLeft ? next : previous,
      Home: 0,
      End: last,
      Escape: -1,
    };
    if (event.key in goals) this.#goTo(goals[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.#choose(this.place);
    else return;
    event.preventDefault();
  }
}
