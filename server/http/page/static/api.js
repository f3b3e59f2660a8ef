/** Client of the server's API. Paths are relative, so that a proxy may serve the page below a folder. */

import { fetchWithKey } from "./api_key.js";
import { readEvents } from "./event_stream.js";

const DETECTED_CHARACTERS = 300;
const MEMORIES = "v3/translation_memories";

/** An unsuccessful response. `message` is the server's, in English, or empty. */
export class ErrorResponse extends Error {
  constructor(message, status, code, retryAfterSeconds) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** No response, or an interrupted one: the network or the server is down. */
export class Unreachable extends Error {}

/** Returns language pairs, models and limits; `return_quality` of the limits is whether all models estimate it. */
export async function capabilities() {
  const [{ models, pairs, pairs_complete }, limits] = await Promise.all([getJson("v1/models"), getJson("v1/limits")]);
  // A request with a model that is not calibrated would be rejected.
  limits.return_quality = models.every(({ calibrated, tasks }) => calibrated || !tasks.includes("translate"));
  return { pairs: pairs_complete === false ? [...pairsOf(models), ...pairs] : pairs, models, limits };
}

/** Returns the pairs that follow from the languages of the models; the first model for a pair serves it. */
function pairsOf(models) {
  const pairs = new Map();
  for (const { name, source_languages: sources, target_languages: targets } of models) {
    const isMultilingual = sources.length > 1 && targets.length > 1;
    for (const source of sources) {
      for (const target of targets.filter((each) => each !== source || !isMultilingual)) {
        const key = `${source} ${target}`;
        pairs.set(key, pairs.get(key) ?? { source, target, models: [name], pivot: null });
      }
    }
  }
  return pairs.values();
}

/** Yields `{ text }` for each delta of the translation, then `{ response }`. `signal` aborts it. */
export async function* translation(request, signal) {
  const response = await post("v1/translate", { ...request, stream: true }, signal);
  for await (const { event, data } of checked(readEvents(response.body))) {
    const content = JSON.parse(data);
    if (event === "text") {
      yield { text: content.text };
    } else if (event === "done") {
      yield { response: content };
      return;
    } else if (event === "error") {
      throw new ErrorResponse(content.error.message, 500, content.error.code, null);
    }
  }
  throw new Unreachable("the response was interrupted");
}

/** Returns one complete response. */
export async function translate(request, signal) {
  const response = await post("v1/translate", request, signal);
  return response.json();
}

/** Returns the language of a long text, or null. It costs one token: the answer to a translation has the language. */
export async function detectedLanguage(text, target) {
  const request = { text: text.slice(0, DETECTED_CHARACTERS), source: "auto", target, max_new_tokens: 1 };
  const { translations } = await translate(request).catch(() => ({ translations: [] }));
  return translations[0]?.detected_language?.language ?? null;
}

/** Returns the log-probabilities of the tokens of `translations[i]`, given `texts[i]`. */
export async function tokenScores(texts, translations, languages, signal) {
  const request = { text: texts, translation: translations, return_token_scores: true, ...languages };
  const response = await (await post("v1/score", request, signal)).json();
  return response.scores.map(({ sentence }) => ({ tokens: sentence.target_tokens, scores: sentence.token_scores }));
}

/** Returns the translation memories that the key sees, the oldest first. */
export async function memories() {
  const { translation_memories: found, total_count: total } = await getJson(MEMORIES);
  for (let page = 1; found.length < total; page += 1) {
    const { translation_memories: more } = await getJson(`${MEMORIES}?page=${page}`);
    if (!more.length) break;
    found.push(...more);
  }
  return found;
}

export async function createMemory(name, { source, target }) {
  return (await post(MEMORIES, { name, source_language: source, target_languages: [target] })).json();
}

/** Stores segments, `[{ source_text, targets: [{ target_language, target_text }] }]`; the latest translation counts. */
export async function keepSegments(id, segments) {
  await post(`${MEMORIES}/${id}/segments`, { segments }, undefined, "PUT");
}

export async function getJson(path, signal) {
  return (await send(path, { signal })).json();
}

/** Converts an unsuccessful response. A body without our error format was written by a proxy. */
export function errorFrom(status, headers, body) {
  const retryAfter = Number.parseInt(headers.get("retry-after") ?? "", 10);
  let error = {};
  try {
    const content = JSON.parse(body);
    error = content.error ?? content; // the second is DeepL's
  } catch {
    // Not JSON: written by a proxy.
  }
  return new ErrorResponse(
    error.message ?? "",
    status,
    error.code ?? "",
    Number.isNaN(retryAfter) ? null : retryAfter,
  );
}

function post(path, content, signal, method = "POST") {
  const headers = { "Content-Type": "application/json" };
  return send(path, { method, headers, body: JSON.stringify(content), signal });
}

async function send(path, options) {
  let response;
  try {
    response = await fetchWithKey(path, options);
  } catch (error) {
    throw options.signal?.aborted ? error : new Unreachable(error.message);
  }
  if (!response.ok) throw errorFrom(response.status, response.headers, await response.text().catch(() => ""));
  return response;
}

async function* checked(events) {
  try {
    yield* events;
  } catch (error) {
    throw error.name === "AbortError" ? error : new Unreachable(error.message);
  }
}
