/** Document jobs: upload, status, download of the result, deletion. */

import { authorization, fetchWithKey } from "./api_key.js";
import { ErrorResponse, Unreachable, errorFrom, getJson } from "./api.js";

const POLL_MS = 700;
const UPLOAD = 0.1; // fraction of the progress bar for the upload

/** Returns the translated document, and its job with the counts of its texts. Calls `progress(done, sent)` with fractions from 0 to 1; `sent` during the upload only. */
export async function documentJob(file, languages, limits, progress, signal) {
  let job = await send(file, languages, progress, signal);
  const address = `v1/documents/${encodeURIComponent(job.id)}`;
  try {
    while (job.status !== "done") {
      if (job.status === "error") throw new ErrorResponse(job.error.message, 422, job.error.code, null);
      progress(UPLOAD + (1 - UPLOAD) * job.progress);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      job = await getJson(address, signal);
    }
    const response = await fetchWithKey(`${address}/content`, { signal });
    if (!response.ok) throw errorFrom(response.status, response.headers, await response.text());
    return { content: await response.blob(), job };
  } finally {
    // Downloaded, failed or cancelled: the job's slot is free for another document.
    fetchWithKey(address, { method: "DELETE", keepalive: true }).catch(() => {});
  }
}

/** Uploads a document and returns its job. XMLHttpRequest reports upload progress; fetch does not. */
function send(file, languages, progress, signal) {
  const form = new FormData();
  form.append("source", languages.source);
  form.append("target", languages.target);
  form.append("file", file);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    signal.addEventListener("abort", () => request.abort());
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      progress(UPLOAD * (loaded / total), loaded / total);
    });
    request.addEventListener("error", () => reject(new Unreachable("the document was not sent")));
    request.addEventListener("abort", () => reject(new DOMException("cancelled", "AbortError")));
    request.addEventListener("load", () => {
      if (request.status < 300) {
        resolve(JSON.parse(request.responseText));
      } else if (request.status === 404 || request.status === 405) {
        reject(new ErrorResponse("", request.status, "text_files_only", null));
      } else {
        const headers = new Headers({ "retry-after": request.getResponseHeader("retry-after") ?? "" });
        reject(errorFrom(request.status, headers, request.responseText));
      }
    });
    request.open("POST", "v1/documents");
    for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
    request.send(form);
  });
}
