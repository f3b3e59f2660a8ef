/** Names of languages: in the language of the interface, and in their own. */

import { getJson } from "./api.js";
import { interfaceLanguage, showAll } from "./interface.js";

export const AUTO = "auto";

const fromServer = new Map(); // tag -> { name, own_name }, of languages for which this browser has no name

/** Reads the names that this browser does not have, in the language of the interface. */
export async function readMissingNames(tags) {
  const isNamed = (tag) => nameOfBrowser(interfaceLanguage(), tag) && nameOfBrowser(bcp47(tag), tag);
  if (tags.every(isNamed)) return;
  const answer = await getJson(`v1/languages?in=${interfaceLanguage()}`).catch(() => ({ languages: [] }));
  for (const { language, ...names } of answer.languages) fromServer.set(language, names);
  showAll();
}

/** Returns the name as it stands in a sentence; the tag itself if it has no name. */
export function languageName(tag) {
  return nameOfBrowser(interfaceLanguage(), tag) ?? fromServer.get(tag)?.name ?? tag;
}

/** Returns the name as a title: with a capital in every language. */
export function languageTitle(tag) {
  const name = languageName(tag);
  return name === tag ? tag : capitalised(name, interfaceLanguage());
}

/** Returns the name of a language in that language. */
export function ownName(tag) {
  return capitalised(nameOfBrowser(bcp47(tag), tag) ?? fromServer.get(tag)?.own_name ?? "", bcp47(tag));
}

export const bcp47 = (tag) => tag.replaceAll("_", "-");

/** Returns a name, or null if the browser has none in this language: it would give one in another language. */
function nameOfBrowser(language, tag) {
  try {
    if (!Intl.DisplayNames.supportedLocalesOf([language]).length) return null;
    return new Intl.DisplayNames([language], { type: "language", fallback: "none" }).of(bcp47(tag)) ?? null;
  } catch {
    return null; // not a BCP 47 tag
  }
}

function capitalised(name, language) {
  const [first = "", ...others] = name;
  try {
    return first.toLocaleUpperCase(language) + others.join("");
  } catch {
    return name;
  }
}
