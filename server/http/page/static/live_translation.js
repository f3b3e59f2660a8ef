/** Live translation: sends a request shortly after the last key; only the last response is shown. */

import { ErrorResponse, translation } from "./api.js";

const PAUSE_MS = 220; // after the last key
const LONGEST_WAIT_MS = 1200; // after the first key, while typing continues
const BACK_OFF_SECONDS = [1, 2, 4, 8, 15];

export class LiveTranslation {
  /**
   * `nextRequest()` returns the request for the current text, or null. `view` has `changed()` (the display is
   * outdated), `begin(request)`, `delta(text, request)`, `settle(translation, request, response)`, `idle()` (no request),
   * `error({ error, seconds, retry })` and `busy(isBusy)`.
   */
  #nextRequest;
  #view;
  #timer = null;
  #firstKey = null;
  #running = null;
  #failures = 0;

  constructor(nextRequest, view) {
    this.#nextRequest = nextRequest;
    this.#view = view;
  }

  /** Schedules a request after an edit. */
  typed() {
    this.#cancel();
    this.#view.changed();
    const now = performance.now();
    this.#firstKey ??= now;
    const left = Math.min(PAUSE_MS, Math.max(0, this.#firstKey + LONGEST_WAIT_MS - now));
    this.#timer = setTimeout(() => this.now(), left);
  }

  /** Sends a request at once. */
  now() {
    this.#cancel();
    this.#firstKey = null;
    const request = this.#nextRequest();
    if (request === null) {
      this.#view.idle();
    } else {
      this.#run(request);
    }
  }

  /** Cancels the pending or running request. The server frees its rows when the connection closes. */
  #cancel() {
    clearTimeout(this.#timer);
    this.#running?.abort();
    this.#running = null;
    this.#view.busy(false);
  }

  async #run(request) {
    const running = new AbortController();
    this.#running = running;
    this.#view.busy(true);
    this.#view.begin(request);
    try {
      for await (const { text, response } of translation(request, running.signal)) {
        if (this.#running !== running) return;
        if (response) {
          this.#failures = 0;
          this.#view.settle(response.translations[0], request, response);
        } else {
          this.#view.delta(text, request);
        }
      }
    } catch (error) {
      if (this.#running === running) this.#fail(error);
    }
    if (this.#running === running) {
      this.#running = null;
      this.#view.busy(false);
    }
  }

  #fail(error) {
    const seconds = this.#secondsToRetry(error);
    this.#failures += 1;
    if (seconds !== null) this.#timer = setTimeout(() => this.now(), seconds * 1000);
    this.#view.error({ error, seconds, retry: () => this.now() });
  }

  /** Returns the seconds until an automatic retry, or null if a retry would fail again. */
  #secondsToRetry(error) {
    const backOff = BACK_OFF_SECONDS[Math.min(this.#failures, BACK_OFF_SECONDS.length - 1)];
    if (!(error instanceof ErrorResponse)) return backOff;
    if (error.code === "quota_exceeded") return null;
    if (error.status === 429) return error.retryAfterSeconds ?? backOff;
    return error.status === 503 || error.status === 502 ? backOff : null;
  }
}
