/** Word highlights: the source of the word under the pointer. */

import { text } from "./interface.js";
import { wordLinks } from "./word_alignment.js";

const REST_MS = 60; // the pointer must rest before a request is sent

export class WordHighlights {
  #source;
  #output;
  #announce;
  #cache = new WeakMap(); // pair -> { text, links }: one request for each translation of a sentence
  #running = null;
  #timer = null;

  /** `languages()` returns the languages of the translation on display. */
  constructor(source, output, languages, announce) {
    this.#source = source;
    this.#output = output;
    this.#announce = announce;
    output.addEventListener("point", ({ detail }) => this.#point(detail, languages));
  }

  clear() {
    clearTimeout(this.#timer);
    this.#running?.abort();
    this.#source.clearHighlights();
    this.#output.highlight(null, null);
  }

  #point(place, languages) {
    this.clear();
    if (!place) return;
    const { pair, range } = place;
    this.#output.highlight(range, pair);
    this.#source.highlight(pair.source, []);
    const target = this.#output.text.slice(...pair.target);
    const cached = this.#cache.get(pair);
    if (cached?.text === target) {
      this.#show(place, cached.links);
    } else if (!languages().pivot) {
      this.#timer = setTimeout(() => this.#request(place, target, languages()), REST_MS);
    }
  }

  async #request(place, target, languages) {
    const running = new AbortController();
    this.#running = running;
    const { pair } = place;
    const source = this.#source.text.slice(...pair.source);
    let links = [];
    try {
      links = await wordLinks(source, target, { source: languages.source, target: languages.target }, running.signal);
    } catch {
      // The sentence stays highlighted; a missing word highlight needs no message.
    }
    if (running.signal.aborted) return;
    this.#cache.set(pair, { text: target, links });
    this.#show(place, links);
  }

  #show({ pair, range, node }, links) {
    const from = links.find(({ word }) => word[0] === range[0])?.from ?? [];
    const [begin] = pair.source;
    const highlighted = from.map((each) => each.map((place) => place + begin));
    this.#source.highlight(pair.source, highlighted);
    const words = highlighted.map((each) => this.#source.text.slice(...each)).join(" ");
    const quality = pair.quality === undefined ? "" : text("output.doubtful", { percent: Math.round(100 * pair.quality) });
    this.#announce([words ? `${node.textContent}: ${words}` : node.textContent, quality].filter(Boolean).join(". "));
  }
}
