/** Server-sent events in the response to a POST request, which EventSource does not support. */

/** Yields `{ event, data }`: https://html.spec.whatwg.org/multipage/server-sent-events.html. */
export async function* readEvents(body) {
  let event = "message";
  let data = [];
  for await (const line of readLines(body)) {
    if (line === "") {
      if (data.length) yield { event, data: data.join("\n") };
      event = "message";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
}

async function* readLines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      // A chunk may end between \r and \n: a final \r waits for the next chunk.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
