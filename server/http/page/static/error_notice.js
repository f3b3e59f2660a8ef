/** Error notice beside the translation, with an automatic retry. */

import { ErrorResponse, Unreachable } from "./api.js";
import { element } from "./dom.js";

export class ErrorNotice {
  #place;
  #countdown = null;

  constructor(place) {
    this.#place = place;
  }

  /** `seconds` until the automatic retry, or null; `retry()` sends the request now. */
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

  /** Hidden from screen readers, which would read it every second. */
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
      ? "Kvasir does not answer. It may be restarting; your text stays here."
      : "This device is offline. Your text stays here.";
  }
  if (error instanceof ErrorResponse) {
    if (error.status === 429) return `Kvasir is busy: ${error.message}.`;
    if (error.status === 503) return "Kvasir is restarting; your text stays here.";
    return sentence(error.message);
  }
  return sentence(error.message || String(error));
}

function mayPass(error) {
  return !(error instanceof ErrorResponse) || error.status >= 500;
}

function sentence(message) {
  const begun = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
