/** What went wrong, in plain words beside the text it went wrong with. */

import { Refused, Unreachable } from "./api.js";
import { element } from "./dom.js";

export class ProblemNotice {
  #place;
  #countdown = null;

  constructor(place) {
    this.#place = place;
  }

  /** `seconds` until it is tried again by itself, or null; `retry` tries now. */
  show({ error, seconds, retry }) {
    this.clear();
    this.#place.append(element("p", {}, describe(error)));
    if (seconds !== null) this.#countDown(seconds);
    if (seconds !== null || mayPass(error)) {
      const button = element("button", { type: "button", className: "firm" }, "Try now");
      button.addEventListener("click", retry);
      this.#place.append(button);
    }
    this.#place.hidden = false;
  }

  clear() {
    clearInterval(this.#countdown);
    this.#place.replaceChildren();
    this.#place.hidden = true;
  }

  /** For the eye only: read aloud every second it would drown everything else. */
  #countDown(seconds) {
    const shown = element("span", { ariaHidden: "true" });
    const show = () => (shown.textContent = seconds > 0 ? `Trying again in ${seconds} s` : "Trying again …");
    show();
    this.#countdown = setInterval(() => {
      seconds -= 1;
      show();
    }, 1000);
    this.#place.append(shown);
  }
}

export function describe(error) {
  if (error instanceof Unreachable) {
    return navigator.onLine
      ? "Kvasir does not answer. Perhaps it is being restarted; your text stays here."
      : "This device is offline. Your text stays here.";
  }
  if (error instanceof Refused) {
    if (error.status === 429) return `Too many people are translating right now: ${error.message}.`;
    if (error.status === 503) return "Kvasir is being restarted; your text stays here.";
    return sentence(error.message);
  }
  return sentence(error.message || String(error));
}

function mayPass(error) {
  return !(error instanceof Refused) || error.status >= 500;
}

function sentence(message) {
  const begun = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
