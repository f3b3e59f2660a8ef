/** Source text: a textarea as high as its text in a box that scrolls, the character count, and highlighted words. */

import { element, wrapped } from "./dom.js";
import { showText } from "./interface.js";

const LONG = 320; // characters; longer texts have a smaller font
const MARGIN = 20; // pixels around a sentence that is scrolled to
const NEAR = 0.8; // fraction of the limit from which the count shows the limit

export class SourceText extends EventTarget {
  #area;
  #mirror;
  #count;
  #clear;
  #limit = Infinity;
  length = 0; // in Unicode characters, as counted by the server

  /** Dispatches "type" after every edit and "clear" after a click on the button. */
  constructor({ area, mirror, count, clear }) {
    super();
    this.#area = area;
    this.#mirror = mirror;
    this.#count = count;
    this.#clear = clear;
    area.addEventListener("input", (event) => {
      this.#onTextChange();
      // An input method is composing: the text is incomplete.
      if (!event.isComposing) this.dispatchEvent(new Event("type"));
    });
    area.addEventListener("compositionend", () => this.dispatchEvent(new Event("type")));
    clear.addEventListener("click", () => {
      this.text = "";
      area.focus();
      this.dispatchEvent(new Event("clear"));
    });
    this.#onTextChange(); // browsers restore the text after a reload
  }

  get text() {
    return this.#area.value;
  }

  set text(text) {
    this.#area.value = text;
    this.#onTextChange();
  }

  set language(tag) {
    this.#area.lang = tag ?? "";
  }

  set limit(limit) {
    this.#limit = limit;
    this.#showCount();
  }

  /** The number of characters above the limit. */
  get excess() {
    return Math.max(0, this.length - this.#limit);
  }

  /** Highlights a sentence faintly, and words in it brightly. */
  highlight(sentence, words) {
    const [begin, end] = sentence;
    const bright = words.map((word) => ({
      begin: word[0] - begin,
      end: word[1] - begin,
      wrap: (part) => element("mark", { className: "glow" }, part),
    }));
    const wrap = (part) => element("mark", { className: "haze" }, ...wrapped(part, bright));
    this.#mirror.replaceChildren(...wrapped(this.text, [{ begin, end, wrap }]), "\n");
    this.#scrollTo(this.#mirror.querySelector("mark"));
  }

  clearHighlights() {
    // A textarea shows an empty line after a final line break; the extra one gives the mirror the same height.
    this.#mirror.textContent = `${this.text}\n`;
  }

  #onTextChange() {
    const text = this.text;
    this.length = 0;
    for (const _ of text) this.length += 1;
    this.clearHighlights();
    this.#area.parentElement.classList.toggle("long", text.length > LONG);
    this.#clear.hidden = !text;
    this.#showCount();
  }

  #showCount() {
    const [count, limit, excess] = [this.length, this.#limit, this.excess];
    const isLimitShown = Number.isFinite(limit) && (count === 0 || count > NEAR * limit);
    this.#count.classList.toggle("over", excess > 0);
    this.#area.ariaInvalid = String(excess > 0);
    if (excess) showText(this.#count, "source.over", { count: excess, limit });
    else showText(this.#count, isLimitShown ? "source.countOf" : "source.count", { count, limit });
  }

  /** Scrolls the box, but not the page, to a highlighted sentence. */
  #scrollTo(mark) {
    const box = this.#area.parentElement;
    const [shown, wanted] = [box.getBoundingClientRect(), mark.getBoundingClientRect()];
    if (wanted.top < shown.top) box.scrollTop -= shown.top - wanted.top + MARGIN;
    else if (wanted.bottom > shown.bottom) box.scrollTop += Math.min(wanted.bottom - shown.bottom + MARGIN, wanted.top - shown.top);
  }
}
