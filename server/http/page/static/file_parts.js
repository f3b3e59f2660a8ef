/** Translation of a text that exceeds one request, in parts that end with lines or words. */

import { ErrorResponse, Unreachable, translate } from "./api.js";

const PART = 4000; // characters; small enough to show progress
const MAX_TRIES = 6;
const RETRY_SECONDS = 2;

/** Returns the translation as the content of a file. Calls `progress(done)` with a fraction from 0 to 1. */
export async function translateInParts(text, languages, limits, progress, signal) {
  const parts = split(text, Math.min(PART, limits.max_text_characters));
  const translated = [];
  for (const part of parts) {
    progress(translated.length / parts.length);
    translated.push(await translatePart(part, languages, signal));
  }
  return { content: new Blob(translated, { type: "text/plain;charset=utf-8" }) };
}

async function translatePart(text, languages, signal) {
  for (let tries = 1; ; tries += 1) {
    try {
      return (await translate({ text, ...languages }, signal)).translations[0].text;
    } catch (error) {
      const mayPass = error instanceof Unreachable || [429, 502, 503].includes(error.status);
      if (!mayPass || tries === MAX_TRIES) throw error;
      const seconds = (error instanceof ErrorResponse && error.retryAfterSeconds) || RETRY_SECONDS;
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      signal.throwIfAborted();
    }
  }
}

/** Splits `text` into parts of at most `longest` characters: whole lines if they fit, else whole words. */
export function split(text, longest) {
  const parts = [];
  let part = "";
  for (const line of text.split(/(?<=\n)/u)) {
    if (part.length + line.length > longest && part) {
      parts.push(part);
      part = "";
    }
    part += line;
    while (part.length > longest) {
      const cut = cutPlace(part, longest);
      parts.push(part.slice(0, cut));
      part = part.slice(cut);
    }
  }
  return part ? [...parts, part] : parts;
}

/** Returns the index after the last sentence, else the last word, else before an incomplete character. */
function cutPlace(text, longest) {
  const beginning = text.slice(0, longest);
  const sentence = beginning.search(/[.!?…。！？]["'”’»)]*\s+[^.!?…。！？]*$/u);
  if (sentence > longest / 2) return sentence + beginning.slice(sentence).search(/\s/u) + 1;
  const space = beginning.search(/\s\S*$/u);
  if (space > longest / 2) return space + 1;
  return /[\uD800-\uDBFF]$/.test(beginning) ? longest - 1 : longest;
}
