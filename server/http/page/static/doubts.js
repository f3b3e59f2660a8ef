/** Doubtful sentences and words of a translation: those that the model estimates to be wrong. */

import { placed, sentencePairs } from "./word_alignment.js";

const MIN_QUALITY = 0.3; // of a sentence that is not underlined
const MIN_WORD_LOG_PROBABILITY = Math.log(0.1);

/** Returns the doubtful sentences as `{ begin, end, quality }`, in the order of the translation. */
export function doubtfulSentences({ text, details }) {
  let from = 0;
  return (details?.quality ?? []).flatMap(({ translation, quality }) => {
    const begin = text.indexOf(translation, from);
    if (begin < 0) return [];
    from = begin + translation.length;
    return quality < MIN_QUALITY ? [{ begin, end: from, quality }] : [];
  });
}

/** Returns the pairs of `sentencePairs`; in doubtful sentences with `quality`, and `doubted`: ranges of unlikely tokens. */
export function markedPairs(sourceText, translation, languages) {
  const pairs = sentencePairs(sourceText, translation.text, translation.sentences, languages);
  const doubtful = doubtfulSentences(translation);
  const unlikely = unlikelyTokens(translation);
  for (const pair of pairs) {
    const [first, last] = pair.target;
    const inside = doubtful.filter(({ begin, end }) => begin < last && first < end);
    if (!inside.length) continue;
    pair.quality = Math.min(...inside.map(({ quality }) => quality));
    pair.doubted = unlikely.filter(([begin, end]) => first <= begin && end <= last).map((each) => each.map((place) => place - first));
  }
  return pairs;
}

function unlikelyTokens({ text, sentences }) {
  let from = 0;
  return (sentences ?? []).flatMap(({ target_tokens: tokens, token_scores: scores }) => {
    const places = placed(tokens, text, from);
    from = places.findLast(Boolean)?.[1] ?? from;
    return places.filter((place, index) => place && scores?.[index] < MIN_WORD_LOG_PROBABILITY);
  });
}
