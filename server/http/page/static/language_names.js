/** Names of languages: in the language of the interface, and in their own. */

import { interfaceLanguage } from "./interface.js";

export const AUTO = "auto";

/** Returns the name as it stands in a sentence; the tag itself if it has no name. */
export function languageName(tag) {
  return nameIn(interfaceLanguage(), tag);
}

/** Returns the name as a title: with a capital in every language. */
export function languageTitle(tag) {
  const name = languageName(tag);
  return name === tag ? tag : capitalised(name, interfaceLanguage());
}

/** Returns the name of a language in that language. */
export function ownName(tag) {
  const name = nameIn(bcp47(tag), tag);
  return name === tag ? "" : capitalised(name, bcp47(tag));
}

export const bcp47 = (tag) => tag.replaceAll("_", "-");

function nameIn(language, tag) {
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(bcp47(tag)) ?? tag;
  } catch {
    return tag; // not a BCP 47 tag
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
