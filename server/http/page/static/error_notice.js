/** Notice next to the translation: an error with an automatic retry, or a text that is too long. */

import { ErrorResponse } from "./api.js";
import { needsKey, setApiKey } from "./api_key.js";
import { element } from "./dom.js";
import { showError } from "./error_texts.js";
import { showLabel, showText, text } from "./interface.js";

export class ErrorNotice {
  #place;
  #countdown = null;

  constructor(place) {
    this.#place = place;
  }

  /** `seconds` until the automatic retry, or null; `retry()` sends the request now. */
  show({ error, seconds, retry }) {
    this.clear();
    const message = element("p");
    showError(message, error);
    this.#place.append(message);
    if (needsKey(error)) this.#place.append(this.#keyForm(retry));
    if (seconds !== null) this.#countDown(seconds);
    if (seconds !== null || mayPass(error)) this.#place.append(this.#button("error.tryNow", retry));
    this.#place.hidden = false;
  }

  /** Shows a text of the page, and a button for what can be done. */
  showText(key, values, actionKey, action) {
    const message = element("p");
    showText(message, key, values);
    this.clear();
    this.#place.append(message, this.#button(actionKey, action));
    this.#place.hidden = false;
  }

  clear() {
    clearInterval(this.#countdown);
    this.#place.replaceChildren();
    this.#place.hidden = true;
  }

  #button(key, action) {
    const button = element("button", { type: "button", className: "firm" });
    showText(button, key);
    button.addEventListener("click", action);
    return button;
  }

  #keyForm(retry) {
    const field = element("input", { type: "password", className: "field", autocomplete: "off", spellcheck: false });
    showLabel(field, "key.label");
    field.placeholder = text("key.label");
    const form = element("form", {}, field, this.#button("key.use", () => form.requestSubmit()));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      setApiKey(field.value.trim());
      retry();
    });
    return form;
  }

  /** Hidden from screen readers, which would read it every second. */
  #countDown(seconds) {
    const shown = element("span", { ariaHidden: "true" });
    const show = () => showText(shown, seconds > 0 ? "error.tryingIn" : "error.trying", { seconds });
    show();
    this.#countdown = setInterval(() => {
      seconds -= 1;
      show();
    }, 1000);
    this.#place.append(shown);
  }
}

function mayPass(error) {
  return !(error instanceof ErrorResponse) || error.status >= 500;
}
