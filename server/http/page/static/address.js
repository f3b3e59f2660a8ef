/** Languages and text in the address of the page: #en/de/text. */

const MAX_CHARACTERS = 2000; // longer texts make addresses that other programs cut off

/** Returns `{ source, target, text }` of the address, or null. A text may contain unescaped slashes. */
export function readAddress() {
  const [source, target, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  if (!source || !target) return null;
  return { source: decoded(source), target: decoded(target), text: decoded(rest.join("/")) };
}

/** Writes languages and text into the address, without a new entry in the history of the browser. */
export function writeAddress(source, target, text) {
  const kept = text.length <= MAX_CHARACTERS ? text.toWellFormed() : "";
  const hash = `#${[source, target, kept].map(encodeURIComponent).join("/")}`;
  if (hash === location.hash) return;
  try {
    history.replaceState(null, "", hash);
  } catch {
    // Browsers limit how often this is possible; the next translation writes it again.
  }
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a stray percent sign
  }
}
