/** Other translations of a sentence: whole ones, and those that go another way from the word that was clicked. */

import { element } from "./dom.js";
import { describe } from "./error_notice.js";
import { translate } from "./api.js";

const MAX_SHOWN = 5;
const NUM_WHOLE = 4;
const NUM_FROM_WORD = 5;

export class OtherTranslations {
  #place;
  #output;
  #asking = null;
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
    this.#asking?.abort();
    this.#place.replaceChildren();
    this.#place.hidden = true;
  }

  /** Of `sentence`, which `pair` says the place of; `languages` and the most beams are the server's words. */
  async open({ pair, range }, sentence, languages, maxBeamSize) {
    this.close();
    const asking = new AbortController();
    this.#asking = asking;
    const shown = this.#output.text.slice(...pair.target);
    const list = element("ol");
    const title = element("p", { className: "quiet" }, "Looking for other ways to say it …");
    this.#place.append(element("header", {}, title, this.#closeButton()), list);
    this.#place.hidden = false;
    try {
      const asked = { text: sentence, source: languages.source, target: languages.target, return_scores: true };
      const found = await Promise.all(
        questions(asked, shown.slice(0, range[0]), maxBeamSize).map((each) => translate(each, asking.signal)),
      );
      const texts = best(found.map(({ translations }) => translations[0]), shown);
      title.textContent = texts.length ? "Other ways to say it" : "No other way to say it was found.";
      list.replaceChildren(...this.#options([shown, ...texts], pair));
      this.#announce(texts.length ? `${texts.length} other translations` : title.textContent);
      if (texts.length) list.querySelectorAll("button")[1].focus({ preventScroll: true });
    } catch (error) {
      if (!asking.signal.aborted) title.textContent = describe(error);
    }
  }

  #options(texts, pair) {
    const buttons = texts.map((text) => {
      const same = commonBeginning(text, texts[0]);
      const option = element("button", { type: "button", className: "option", ariaPressed: String(text === texts[0]) });
      option.append(text.slice(0, same), element("b", {}, text.slice(same)));
      option.addEventListener("click", () => {
        this.#output.replace(pair, text);
        for (const each of buttons) each.ariaPressed = String(each === option);
        this.#announce(text);
      });
      return option;
    });
    return buttons.map((button) => element("li", {}, button));
  }

  #closeButton() {
    const button = element("button", { type: "button", className: "plain" }, "Close");
    button.addEventListener("click", () => this.#leave());
    return button;
  }

  #leave() {
    this.close();
    this.#output.focus();
  }
}

function questions(asked, beginning, maxBeamSize) {
  const whole = { ...asked, num_hypotheses: Math.min(NUM_WHOLE, maxBeamSize) };
  const fromWord = { ...asked, num_hypotheses: Math.min(NUM_FROM_WORD, maxBeamSize), return_alternatives: true };
  return [whole, beginning.trim() ? { ...fromWord, target_prefix: beginning } : fromWord];
}

/** Each text once, the likeliest first, without the one that is shown. */
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

/** Characters two texts begin with alike, up to the beginning of a word. */
function commonBeginning(one, other) {
  if (one === other) return one.length;
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  return one.lastIndexOf(" ", same) + 1;
}
