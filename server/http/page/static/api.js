/** The server, as this page asks it. Paths are relative, so that a proxy may have all of it below a folder. */

import { readEvents } from "./event_stream.js";

/** The server answered, and the answer is no. `message` is its own, for people. */
export class Refused extends Error {
  constructor(message, status, code, retryAfterSeconds) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** No answer, or one that broke off: the network, or the server is down. */
export class Unreachable extends Error {}

/** `languages` are pairs that can be translated; `detects` says whether the source may be "auto". */
export async function abilities() {
  const [models, limits] = await Promise.all([getJson("v1/models"), getJson("v1/limits")]);
  const pairs =
    models.pairs ??
    models.models.flatMap((model) =>
      model.source_languages.flatMap((source) =>
        model.target_languages.map((target) => ({ source, target, pivot: null })),
      ),
    );
  return { pairs, detects: "pairs" in models, limits };
}

/** Yields `{ text }` for each piece of the translation, then `{ answer }`. Ends early when `signal` says so. */
export async function* translation(asked, signal) {
  const response = await post("v1/translate", { ...asked, stream: true }, signal);
  for await (const { event, data } of unbroken(readEvents(response.body))) {
    const content = JSON.parse(data);
    if (event === "text") {
      yield { text: content.text };
    } else if (event === "done") {
      yield { answer: content };
      return;
    } else if (event === "error") {
      throw new Refused(content.error.message, 500, content.error.code, null);
    }
  }
  throw new Unreachable("the answer broke off");
}

/** One translation, whole, with what was asked about it. */
export async function translate(asked, signal) {
  const response = await post("v1/translate", asked, signal);
  return response.json();
}

/** The log-probability of each token of `translations[i]`, given `texts[i]`. */
export async function tokenScores(texts, translations, languages, signal) {
  const asked = { text: texts, translation: translations, return_token_scores: true, ...languages };
  const answer = await (await post("v1/score", asked, signal)).json();
  return answer.scores.map(({ sentence }) => ({ tokens: sentence.target_tokens, scores: sentence.token_scores }));
}

export async function getJson(path, signal) {
  return (await request(path, { signal })).json();
}

/** What went wrong, from an answer that is not a success; without our envelope a proxy has spoken. */
export function refusal(status, headers, body) {
  const retryAfter = Number.parseInt(headers.get("retry-after") ?? "", 10);
  let error = {};
  try {
    error = JSON.parse(body).error ?? {};
  } catch {
    // Not JSON, so not ours.
  }
  return new Refused(
    error.message ?? `the server answered with status ${status}`,
    status,
    error.code ?? "",
    Number.isNaN(retryAfter) ? null : retryAfter,
  );
}

function post(path, asked, signal) {
  const headers = { "Content-Type": "application/json" };
  return request(path, { method: "POST", headers, body: JSON.stringify(asked), signal });
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw options.signal?.aborted ? error : new Unreachable(error.message);
  }
  if (!response.ok) throw refusal(response.status, response.headers, await response.text().catch(() => ""));
  return response;
}

async function* unbroken(events) {
  try {
    yield* events;
  } catch (error) {
    throw error.name === "AbortError" ? error : new Unreachable(error.message);
  }
}
