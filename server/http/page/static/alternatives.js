/** Alternatives of a sentence: complete ones, and ones that differ from a clicked word on. */

import { element } from "./dom.js";
import { showError } from "./error_texts.js";
import { showText, text } from "./interface.js";
import { translate } from "./api.js";

const MAX_SHOWN = 5;
const NUM_WHOLE = 4;
const NUM_FROM_WORD = 5;

export class Alternatives {
  #place;
  #output;
  #running = null;
  #announce;

  constructor(place, output, announce) {
    this.#place = place;
    this.#output = output;
    this.#announce = announce;
    place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#leave();
    });
  }

  close() {
    this.#running?.abort();
    this.#place.replaceChildren();
    this.#place.hidden = true;
  }

  /** Shows alternatives of `sentence`, whose ranges are `pair`, from the word at `range` on. */
  async open({ pair, range }, sentence, languages, maxBeamSize) {
    this.close();
    const running = new AbortController();
    this.#running = running;
    const shown = this.#output.text.slice(...pair.target);
    const list = element("ol");
    const title = element("p", { className: "quiet" });
    showText(title, "alternatives.looking");
    this.#place.append(element("header", {}, title, this.#closeButton()), list);
    this.#place.hidden = false;
    try {
      const request = { text: sentence, source: languages.source, target: languages.target, return_scores: true };
      const found = await Promise.all(
        requests(request, shown.slice(0, range[0]), maxBeamSize).map((each) => translate(each, running.signal)),
      );
      const texts = best(found.map(({ translations }) => translations[0]), shown);
      showText(title, texts.length ? "alternatives.title" : "alternatives.none");
      list.replaceChildren(...this.#options([shown, ...texts], pair));
      this.#announce(texts.length ? text("alternatives.found", { count: texts.length }) : title.textContent);
      if (texts.length) list.querySelectorAll("button")[1].focus({ preventScroll: true });
    } catch (error) {
      if (!running.signal.aborted) showError(title, error);
    }
  }

  #options(texts, pair) {
    const buttons = texts.map((sentence) => {
      const same = commonBeginning(sentence, texts[0]);
      const isShown = String(sentence === texts[0]);
      const option = element("button", { type: "button", className: "option", ariaPressed: isShown });
      option.append(sentence.slice(0, same), element("b", {}, sentence.slice(same)));
      option.addEventListener("click", () => {
        this.#output.replace(pair, sentence);
        for (const each of buttons) each.ariaPressed = String(each === option);
        this.#announce(sentence);
      });
      return option;
    });
    return buttons.map((button) => element("li", {}, button));
  }

  #closeButton() {
    const button = element("button", { type: "button", className: "plain" });
    showText(button, "alternatives.close");
    button.addEventListener("click", () => this.#leave());
    return button;
  }

  #leave() {
    this.close();
    this.#output.focus();
  }
}

function requests(request, beginning, maxBeamSize) {
  const whole = { ...request, num_hypotheses: Math.min(NUM_WHOLE, maxBeamSize) };
  const fromWord = { ...request, num_hypotheses: Math.min(NUM_FROM_WORD, maxBeamSize), return_alternatives: true };
  return [whole, beginning.trim() ? { ...fromWord, target_prefix: beginning } : fromWord];
}

/** Returns distinct texts, most likely first, without the one on display. */
function best(translations, shown) {
  const scores = new Map();
  for (const { text, score, alternatives = [] } of translations) {
    for (const each of [{ text, score }, ...alternatives]) {
      const cleaned = each.text.trim();
      if (cleaned && cleaned !== shown.trim()) scores.set(cleaned, Math.max(each.score, scores.get(cleaned) ?? -Infinity));
    }
  }
  const ranked = [...scores].sort(([, one], [, other]) => other - one);
  return ranked.slice(0, MAX_SHOWN).map(([text]) => text);
}

/** Returns the length of the common prefix, up to the beginning of a word. */
function commonBeginning(one, other) {
  if (one === other) return one.length;
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  return one.lastIndexOf(" ", same) + 1;
}
