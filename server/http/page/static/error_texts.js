/** Texts of errors. Messages of the server are in English and follow a text in the language of the interface. */

import { ErrorResponse, Unreachable } from "./api.js";
import { element } from "./dom.js";
import { interfaceLanguage, showRendered, text } from "./interface.js";

const KEYS = {
  queue_full: "error.busy",
  draining: "error.restarting",
  invalid_api_key: "key.wrong",
  missing_api_key: "key.missing",
  quota_exceeded: "key.quota",
  deadline_exceeded: "error.late",
  text_files_only: "error.textFilesOnly",
};
const KEYS_OF_STATUS = { 429: "error.busy", 502: "error.restarting", 503: "error.restarting", 504: "error.late" };

/** Shows an error in an element. It follows the language of the interface. */
export function showError(node, error) {
  delete node.dataset.text;
  showRendered(node, () => {
    const { summary, detail } = parts(error);
    const message = detail && element("span", { lang: "en" }, detail);
    node.replaceChildren(...[summary, summary && detail && " ", message].filter(Boolean));
  });
}

/** Returns an error as one text, for announcements. */
export function errorText(error) {
  const { summary, detail } = parts(error);
  return [summary, detail].filter(Boolean).join(" ");
}

function parts(error) {
  if (error instanceof Unreachable) return { summary: text(navigator.onLine ? "error.unreachable" : "error.offline") };
  if (!(error instanceof ErrorResponse)) return { detail: sentence(error.message || String(error)) };
  const key = KEYS[error.code] ?? KEYS_OF_STATUS[error.status];
  if (key === "error.restarting" || key?.startsWith("key.") || !error.message) {
    return { summary: key ? text(key) : text("error.status", { status: String(error.status) }) };
  }
  // The server's message is more exact than a general text, which readers of English do not need as well.
  const isEnough = !key && interfaceLanguage() === "en";
  return { summary: isEnough ? "" : text(key ?? "error.rejected"), detail: sentence(error.message) };
}

function sentence(message) {
  const begun = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
