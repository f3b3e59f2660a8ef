/**
 * Alignment of a translation with its source, by sentence and by word.
 *
 * Sentences are aligned by the tokens in the response. Words are aligned by prediction difference (Li et al. 2019,
 * "On the Word Alignment from Neural Machine Translation"): the loss of probability of each word of the translation
 * when one word of the source is left out. The attention of small models is a poor alignment.
 */

import { tokenScores } from "./api.js";

const MAX_WORDS = 48; // per sentence: each costs one scoring of the translation
const MIN_DROP = 0.05; // of log-probability, for a source word to be aligned
const MIN_DROP_RATIO = 0.6; // of the largest drop, for a further source word to be aligned
const DISTANCE_COST = 0.3; // for the distance of a whole sentence: decides between nearly equal drops
const NEARBY = 40; // characters in which a token must be found

/** Returns pairs of aligned ranges [begin, end): `{ source, target }`, in the order of the target. */
export function sentencePairs(sourceText, targetText, details, languages) {
  if (details?.length) {
    let [sourceFrom, targetFrom] = [0, 0];
    return details.flatMap(({ source_tokens, target_tokens }) => {
      const source = span(placed(source_tokens, sourceText, sourceFrom));
      const target = span(placed(target_tokens, targetText, targetFrom));
      if (!source || !target) return [];
      [sourceFrom, targetFrom] = [source[1], target[1]];
      return [{ source, target }];
    });
  }
  const sources = sentences(sourceText, languages.source);
  const targets = sentences(targetText, languages.target);
  if (sources.length === targets.length) return targets.map((target, index) => ({ source: sources[index], target }));
  return [{ source: [0, sourceText.length], target: [0, targetText.length] }];
}

/** Returns the ranges of the words of `text` in any script, without punctuation. */
export function words(text, language) {
  return segments(text, language, "word").filter((segment) => segment.isWordLike).map(range);
}

/** Returns for each target word the aligned source words, as ranges within the sentences. */
export async function wordLinks(source, target, languages, signal) {
  const sourceWords = words(source, languages.source);
  const targetWords = words(target, languages.target);
  if (!sourceWords.length || sourceWords.length > MAX_WORDS) return [];
  if (sourceWords.length === 1) return targetWords.map((word) => ({ word, from: sourceWords }));
  const without = sourceWords.map(([begin, end]) => source.slice(0, begin) + source.slice(end).replace(/^\s/u, ""));
  const texts = [source, ...without];
  const [whole, ...others] = await tokenScores(texts, texts.map(() => target), languages, signal);
  const places = placed(whole.tokens, target, 0);
  return targetWords.map((word, place) => {
    const tokens = places.flatMap((place, index) => (place && overlap(place, word) ? [index] : []));
    const drops = others.map(({ scores }, index) => {
      const distance = Math.abs(place / targetWords.length - index / sourceWords.length);
      const drop = tokens.reduce((sum, token) => sum + (whole.scores[token] ?? 0) - (scores[token] ?? 0), 0);
      return drop < MIN_DROP ? -Infinity : drop - DISTANCE_COST * distance;
    });
    const largest = Math.max(...drops);
    const enough = largest - (1 - MIN_DROP_RATIO) * Math.abs(largest);
    return { word, from: sourceWords.filter((_, index) => drops[index] > -Infinity && drops[index] >= enough) };
  });
}

/** Returns the range of each SentencePiece token in `text`, or null if it is not found. */
export function placed(tokens, text, from) {
  return tokens.map((token) => {
    const wanted = token.replaceAll("▁", " ").trim();
    if (!wanted) return null;
    const begin = text.indexOf(wanted, from);
    if (begin < 0 || begin > from + NEARBY) return null;
    from = begin + wanted.length;
    return [begin, from];
  });
}

function span(places) {
  const found = places.filter(Boolean);
  return found.length ? [found[0][0], found.at(-1)[1]] : null;
}

function sentences(text, language) {
  return segments(text, language, "sentence")
    .filter(({ segment }) => segment.trim())
    .map(({ segment, index }) => [index, index + segment.trimEnd().length]);
}

function segments(text, language, granularity) {
  const tag = Intl.Segmenter.supportedLocalesOf([bcp47(language)].filter(Boolean));
  return [...new Intl.Segmenter(tag, { granularity }).segment(text)];
}

function bcp47(language) {
  try {
    return Intl.getCanonicalLocales(language.replaceAll("_", "-"))[0];
  } catch {
    return null;
  }
}

const range = ({ segment, index }) => [index, index + segment.length];
const overlap = (one, other) => one[0] < other[1] && other[0] < one[1];
