/** Note below a translation: the models that answered, and what their cards state. */

import { element } from "./dom.js";
import { formatted, showRendered, text } from "./interface.js";

export class ModelNote {
  #place;
  #summary;
  #details;
  #models = [];

  /** `place` is a details element. */
  constructor(place) {
    this.#place = place;
    this.#summary = place.querySelector("summary");
    this.#details = place.querySelector("div");
  }

  set models(models) {
    this.#models = models;
  }

  /** Shows the models of a response; null hides the note. */
  show(name) {
    this.#place.hidden = !name;
    if (!name) return;
    const names = name.split(/\+|, /);
    const models = this.#models.filter((model) => model.name === name || names.includes(model.name));
    showRendered(this.#summary, () => {
      const marked = models.some((model) => model.demonstration) ? ` · ${text("model.demonstration")}` : "";
      this.#summary.textContent = text("model.name", { name }) + marked;
    });
    showRendered(this.#details, () => this.#details.replaceChildren(...models.flatMap(statements)));
    this.#place.classList.toggle("bare", !this.#details.childNodes.length);
  }
}

function statements({ name, purpose, quality, demonstration, source_languages, target_languages }) {
  const nodes = [];
  if (purpose) nodes.push(element("p", { lang: "en" }, `${name}: ${purpose}`));
  if (quality?.length) {
    const items = quality.map(({ data, bleu }) => {
      const number = formatted(bleu, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
      return element("li", {}, text("model.bleu", { bleu: number, data }));
    });
    nodes.push(element("p", {}, text("model.quality")), element("ul", {}, ...items));
  }
  if (demonstration) {
    const command = `kvasir serve ${source_languages[0]}-${target_languages[0]}`;
    nodes.push(element("p", {}, text("model.better", { command })));
  }
  return nodes;
}
