/** Pointing at a word of the translation lights up where it comes from. */

import { wordLinks } from "./word_alignment.js";

const REST_MS = 60; // of the pointer, before the server is asked

export class Lights {
  #source;
  #output;
  #announce;
  #known = new WeakMap(); // pair -> { text, links }: asked once for each sentence and translation of it
  #asking = null;
  #timer = null;

  /** `languages` is asked for the two of the translation that is shown. */
  constructor(source, output, languages, announce) {
    this.#source = source;
    this.#output = output;
    this.#announce = announce;
    output.addEventListener("point", ({ detail }) => this.#point(detail, languages));
  }

  off() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.#source.unlight();
    this.#output.light(null, null);
  }

  #point(place, languages) {
    this.off();
    if (!place) return;
    const { pair, range } = place;
    this.#output.light(range, pair);
    this.#source.light(pair.source, []);
    const target = this.#output.text.slice(...pair.target);
    const known = this.#known.get(pair);
    if (known?.text === target) {
      this.#show(place, known.links);
    } else if (!languages().pivot) {
      this.#timer = setTimeout(() => this.#ask(place, target, languages()), REST_MS);
    }
  }

  async #ask(place, target, languages) {
    const asking = new AbortController();
    this.#asking = asking;
    const { pair } = place;
    const source = this.#source.text.slice(...pair.source);
    let links = [];
    try {
      links = await wordLinks(source, target, { source: languages.source, target: languages.target }, asking.signal);
    } catch {
      // The sentence is lit all the same; a light is not worth a message.
    }
    if (asking.signal.aborted) return;
    this.#known.set(pair, { text: target, links });
    this.#show(place, links);
  }

  #show({ pair, range, node }, links) {
    const from = links.find(({ word }) => word[0] === range[0])?.from ?? [];
    const [begin] = pair.source;
    const lit = from.map((each) => each.map((place) => place + begin));
    this.#source.light(pair.source, lit);
    const heard = lit.map((each) => this.#source.text.slice(...each)).join(" ");
    this.#announce(heard ? `${node.textContent}: ${heard}` : node.textContent);
  }
}
