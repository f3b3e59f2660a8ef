/** The text to translate: a textarea as high as its text, its length, and lights on words of it. */

import { element, wrapped } from "./dom.js";

const LONG = 320; // characters from which the letters are smaller
const NEAR = 0.8; // part of the limit from which the count says what is left

export class SourceText extends EventTarget {
  #area;
  #mirror;
  #count;
  #clear;
  #limit = Infinity;
  length = 0; // in Unicode characters, as the server counts

  /** Says "type" for every change by hand and "clear" for one by the button. */
  constructor({ area, mirror, count, clear }) {
    super();
    this.#area = area;
    this.#mirror = mirror;
    this.#count = count;
    this.#clear = clear;
    area.addEventListener("input", (event) => {
      this.#shown();
      // Half a word of an input method is no text yet.
      if (!event.isComposing) this.dispatchEvent(new Event("type"));
    });
    area.addEventListener("compositionend", () => this.dispatchEvent(new Event("type")));
    clear.addEventListener("click", () => {
      this.text = "";
      area.focus();
      this.dispatchEvent(new Event("clear"));
    });
    this.#shown(); // a browser may bring back what was typed before a reload
  }

  get text() {
    return this.#area.value;
  }

  set text(text) {
    this.#area.value = text;
    this.#shown();
  }

  set language(tag) {
    this.#area.lang = tag ?? "";
  }

  set limit(limit) {
    this.#limit = limit;
    this.#showCount();
  }

  get isTooLong() {
    return this.length > this.#limit;
  }

  /** Light up ranges of the text: a sentence faintly, words in it brightly. */
  light(sentence, words) {
    const [begin, end] = sentence;
    const bright = words.map((word) => ({
      begin: word[0] - begin,
      end: word[1] - begin,
      wrap: (part) => element("mark", { className: "glow" }, part),
    }));
    const wrap = (part) => element("mark", { className: "haze" }, ...wrapped(part, bright));
    this.#mirror.replaceChildren(...wrapped(this.text, [{ begin, end, wrap }]), "\n");
  }

  unlight() {
    // The line break at the end is as high as the line a textarea shows behind one.
    this.#mirror.textContent = `${this.text}\n`;
  }

  #shown() {
    const text = this.text;
    this.length = 0;
    for (const _ of text) this.length += 1;
    this.unlight();
    this.#area.parentElement.classList.toggle("long", text.length > LONG);
    this.#clear.hidden = !text;
    this.#showCount();
  }

  #showCount() {
    const number = new Intl.NumberFormat("en");
    const over = this.length - this.#limit;
    const isNear = this.length > NEAR * this.#limit;
    this.#count.classList.toggle("over", over > 0);
    this.#area.ariaInvalid = String(over > 0);
    this.#count.textContent =
      over > 0
        ? `${number.format(over)} characters too many: ${number.format(this.#limit)} at most`
        : `${number.format(this.length)}${isNear || this.length === 0 ? this.#ofLimit(number) : ""}`;
  }

  #ofLimit(number) {
    return Number.isFinite(this.#limit) ? ` / ${number.format(this.#limit)}` : "";
  }
}
