/** Search in a list of languages, by their names in two languages and by their tags. */

import { bcp47, languageTitle, ownName } from "./language_names.js";

/** Returns the tags that match, the best first; of equal ones in the order of `tags`. */
export function matching(query, tags) {
  const wanted = folded(query);
  const ranked = tags.map((tag) => ({ tag, rank: rankOf(wanted, tag) })).filter(({ rank }) => rank !== null);
  return ranked.sort((one, other) => one.rank - other.rank).map(({ tag }) => tag);
}

function rankOf(wanted, tag) {
  const names = [folded(languageTitle(tag)), folded(ownName(tag))];
  if (folded(bcp47(tag)) === wanted) return 0;
  if (names.some((name) => name.startsWith(wanted))) return 1;
  if (names.some((name) => name.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(wanted)))) return 2;
  return names.some((name) => name.includes(wanted)) ? 3 : null;
}

/** Returns a text without case and accents: "francais" finds "Français". */
function folded(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();
}
