/** Languages used last, for each side, the last one first. */

import { store, stored } from "./storage.js";

const KEY = "kvasir-recent-languages";
const MAX_KEPT = 5;

/** `side` is "source" or "target". */
export function recentLanguages(side) {
  const tags = stored(KEY, {})?.[side];
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [];
}

export function rememberLanguage(side, tag) {
  const tags = [tag, ...recentLanguages(side).filter((each) => each !== tag)];
  store(KEY, { ...stored(KEY, {}), [side]: tags.slice(0, MAX_KEPT) });
}
