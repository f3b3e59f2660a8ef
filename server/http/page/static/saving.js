/** Copying and saving a text. Browsers offer navigator.clipboard on https and localhost only. */

/** Copies `text`. Returns whether it succeeded; if not, the text in `shown` is selected. */
export async function copyText(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const selection = getSelection();
    selection.selectAllChildren(shown);
    const isCopied = document.execCommand("copy");
    if (isCopied) selection.removeAllRanges();
    return isCopied;
  }
}

/** Saves `text` as a file in the downloads of the browser. */
export function saveText(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
