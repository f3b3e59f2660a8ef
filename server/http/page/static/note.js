/** Note below a translation: a cut sentence, a changed target, an unchanged text, doubtful sentences or the pivot. */

import { doubtfulSentences } from "./doubts.js";
import { clearText, showText } from "./interface.js";
import { languageName } from "./language_names.js";

/** Shows the note in `node` and returns its text. `change` is `{ language, target }` if the target changed, else null. */
export function showNote(node, translation, pivot, change) {
  const { finish_reason: reason, translated, detected_language: detected } = translation;
  const doubts = doubtfulSentences(translation).length;
  const named = (tag) => () => languageName(tag);
  if (reason === "length" || reason === "repetition") showText(node, `output.${reason}`);
  else if (change) {
    showText(node, "languages.switched", { language: named(change.language), target: named(change.target) });
  } else if (translated === false && detected) showText(node, "languages.same", { language: named(detected.language) });
  else if (doubts) showText(node, "output.doubts", { count: doubts });
  else if (pivot) showText(node, "output.pivot", { language: named(pivot) });
  else clearText(node);
  return node.textContent;
}
