/** Note below a translation: a cut sentence, a changed target, an unchanged text, or what should be checked, and the pivot. */

import { doubtfulSentences } from "./doubts.js";
import { clearText, showRendered, text } from "./interface.js";
import { languageName } from "./language_names.js";

const MAX_NUMBERS = 5; // that are named

/**
 * Shows the note in `node` and returns its text. `shown` has the target and the pivot, `change` is `{ language, target }`
 * if the target changed, else null.
 */
export function showNote(node, translation, shown, change) {
  const notes = notesOf(translation, shown, change);
  clearText(node);
  if (notes.length) showRendered(node, () => (node.textContent = notes.map((note) => text(...note)).join(" · ")));
  return node.textContent;
}

function notesOf(translation, { target, pivot }, change) {
  const { finish_reason: reason, translated, detected_language: detected, details } = translation;
  const named = (tag) => () => languageName(tag);
  const checks = [
    ["output.missing", numbered(details?.numbers?.missing)],
    ["output.invented", numbered(details?.numbers?.invented)],
    ["output.doubts", { count: doubtfulSentences(translation).length }],
    ["output.remembered", { count: details?.memory?.filter(({ memory }) => memory === "exact").length }],
  ].filter(([, { count }]) => count);
  if (reason === "length" || reason === "repetition") return [[`output.${reason}`], ...checks];
  if (change) return [["languages.switched", { language: named(change.language), target: named(change.target) }]];
  if (translated === false && detected) return [["languages.same", { language: named(detected.language) }]];
  if (details?.kept?.some((kept) => kept.reason === "already_in_target_language")) {
    return [["languages.same", { language: named(target) }]];
  }
  const count = details?.incomplete?.length;
  if (count) return [["output.incomplete", { count }], ...checks];
  return checks.length || !pivot ? checks : [["output.pivot", { language: named(pivot) }]];
}

const numbered = (numbers = []) => ({
  count: numbers.length,
  numbers: numbers.slice(0, MAX_NUMBERS).join(", ") + (numbers.length > MAX_NUMBERS ? " …" : ""),
});
