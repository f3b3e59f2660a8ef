/** Copying to the clipboard. Browsers offer navigator.clipboard on https and localhost only. */

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
