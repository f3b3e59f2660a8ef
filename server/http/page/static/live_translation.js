/** The translation that follows the text: asked a moment after the last key, and only the last answer counts. */

import { Refused, translation } from "./api.js";

const PAUSE_MS = 220; // after the last key
const LONGEST_WAIT_MS = 1200; // for someone who types without a pause
const BACK_OFF_SECONDS = [1, 2, 4, 8, 15];

export class LiveTranslation {
  /**
   * `question()` gives what is to be asked now, or null for nothing. `show` has `changed()` for what
   * is shown not belonging to the text any more, `begin(asked)`, `piece(text)`, `settle(translation, asked, answer)`,
   * `nothing()`, `problem({ error, seconds, retry })` and `busy(isBusy)`.
   */
  #question;
  #show;
  #timer = null;
  #firstKey = null;
  #running = null;
  #failures = 0;

  constructor(question, show) {
    this.#question = question;
    this.#show = show;
  }

  /** The text has changed: soon. */
  typed() {
    this.#cancel();
    this.#show.changed();
    const now = performance.now();
    this.#firstKey ??= now;
    const left = Math.min(PAUSE_MS, Math.max(0, this.#firstKey + LONGEST_WAIT_MS - now));
    this.#timer = setTimeout(() => this.now(), left);
  }

  /** At once. */
  now() {
    this.#cancel();
    this.#firstKey = null;
    const asked = this.#question();
    if (asked === null) {
      this.#show.nothing();
    } else {
      this.#run(asked);
    }
  }

  /** What runs or waits is given up; the server frees its rows when the connection closes. */
  #cancel() {
    clearTimeout(this.#timer);
    this.#running?.abort();
    this.#running = null;
    this.#show.busy(false);
  }

  async #run(asked) {
    const running = new AbortController();
    this.#running = running;
    this.#show.busy(true);
    this.#show.begin(asked);
    try {
      for await (const { text, answer } of translation(asked, running.signal)) {
        if (this.#running !== running) return;
        if (answer) {
          this.#failures = 0;
          this.#show.settle(answer.translations[0], asked, answer);
        } else {
          this.#show.piece(text);
        }
      }
    } catch (error) {
      if (this.#running === running) this.#fail(error);
    }
    if (this.#running === running) {
      this.#running = null;
      this.#show.busy(false);
    }
  }

  #fail(error) {
    const seconds = this.#secondsToRetry(error);
    this.#failures += 1;
    if (seconds !== null) this.#timer = setTimeout(() => this.now(), seconds * 1000);
    this.#show.problem({ error, seconds, retry: () => this.now() });
  }

  /** Null for what asking again would not mend, or not without being told to. */
  #secondsToRetry(error) {
    const backOff = BACK_OFF_SECONDS[Math.min(this.#failures, BACK_OFF_SECONDS.length - 1)];
    if (!(error instanceof Refused)) return backOff;
    if (error.status === 429) return error.retryAfterSeconds ?? backOff;
    return error.status === 503 || error.status === 502 ? backOff : null;
  }
}
