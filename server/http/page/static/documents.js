/** Documents with a format of their own: sent to the server, watched, fetched when they are done, and deleted. */

import { Refused, Unreachable, getJson, refusal } from "./api.js";

const ASK_AGAIN_MS = 700;
const SENT = 0.1; // part of the bar that the upload has

/** The translated document. `progress(part, said)` is told how much is done, from 0 to 1. */
export async function documentJob(file, languages, limits, progress, signal) {
  let job = await send(file, languages, progress, signal);
  const address = `v1/documents/${encodeURIComponent(job.id)}`;
  try {
    while (job.status !== "done") {
      if (job.status === "error") throw new Refused(job.error.message, 422, job.error.code, null);
      progress(SENT + (1 - SENT) * job.progress);
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
      job = await getJson(address, signal);
    }
    const response = await fetch(`${address}/content`, { signal });
    if (!response.ok) throw refusal(response.status, response.headers, await response.text());
    return await response.blob();
  } finally {
    // Fetched, failed or cancelled: nobody needs it there any more, and its place is another's.
    fetch(address, { method: "DELETE", keepalive: true }).catch(() => {});
  }
}

/** What the server says of a document it has got. Of XMLHttpRequest, for fetch does not tell how much was sent. */
function send(file, languages, progress, signal) {
  const form = new FormData();
  form.append("source", languages.source);
  form.append("target", languages.target);
  form.append("file", file);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    signal.addEventListener("abort", () => request.abort());
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      progress(SENT * (loaded / total), `Sending: ${Math.floor((100 * loaded) / total)} %`);
    });
    request.addEventListener("error", () => reject(new Unreachable("the document was not sent")));
    request.addEventListener("abort", () => reject(new DOMException("cancelled", "AbortError")));
    request.addEventListener("load", () => {
      if (request.status < 300) {
        resolve(JSON.parse(request.responseText));
      } else if (request.status === 404 || request.status === 405) {
        reject(new Refused("this server translates text files only (.txt)", request.status, "", null));
      } else {
        const headers = new Headers({ "retry-after": request.getResponseHeader("retry-after") ?? "" });
        reject(refusal(request.status, headers, request.responseText));
      }
    });
    request.open("POST", "v1/documents");
    request.send(form);
  });
}
