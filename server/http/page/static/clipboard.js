/** Copying, with and without the modern way, which browsers keep for https and localhost. */

/** Whether `text` is on the clipboard now; if not, the text in `shown` is at least selected. */
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
