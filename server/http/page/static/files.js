/** Files: dropped or opened, translated in parts or as documents, and offered for download. */

import { documentJob } from "./documents.js";
import { element } from "./dom.js";
import { languageName } from "./languages.js";
import { translateInParts } from "./file_parts.js";
import { describe } from "./error_notice.js";

export class Files {
  #elements;
  #page;

  /** `page` has `languages()`, `limits()`, `fill(text)` for a text within the limit, and `announce(text)`. */
  constructor(elements, page) {
    this.#elements = elements;
    this.#page = page;
    elements.input.addEventListener("change", () => {
      this.#take([...elements.input.files]);
      elements.input.value = ""; // allows opening the same file again
    });
    this.#watchDrops();
  }

  #watchDrops() {
    const { drop } = this.#elements;
    let depth = 0; // of nested elements: each one has its own enter and leave event
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragenter", (event) => {
      if (!hasFiles(event)) return;
      depth += 1;
      drop.hidden = false;
    });
    addEventListener("dragleave", (event) => {
      if (!hasFiles(event)) return;
      depth -= 1;
      drop.hidden = depth > 0 ? drop.hidden : true;
    });
    addEventListener("dragover", (event) => {
      if (hasFiles(event)) event.preventDefault();
    });
    addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth = 0;
      drop.hidden = true;
      this.#take([...event.dataTransfer.files]);
    });
  }

  async #take(files) {
    for (const file of files) {
      const text = isPlainText(file) ? await decoded(file) : null;
      const fits = text !== null && [...text].length <= this.#page.limits().max_text_characters;
      if (fits && files.length === 1) {
        this.#page.fill(text);
        this.#page.announce(`${file.name} is opened`);
      } else {
        this.#begin(file, text);
      }
    }
  }

  async #begin(file, text) {
    const running = new AbortController();
    const languages = this.#page.languages();
    const into = languageName(languages.target);
    const bar = element("progress", { max: 1, value: 0, ariaLabel: `Progress of ${file.name}` });
    const state = element("p", { className: "state quiet" }, `Into ${into} …`);
    const remove = element("button", { type: "button", className: "plain" }, "Cancel");
    remove.ariaLabel = `Cancel ${file.name}`;
    const item = element("li", {}, element("p", { className: "name", title: file.name }, file.name), state, remove, bar);
    this.#elements.list.append(item);
    item.scrollIntoView({ block: "nearest" });
    let address = null;
    remove.addEventListener("click", () => {
      running.abort();
      if (address) URL.revokeObjectURL(address);
      item.remove();
    });
    const progress = (done, message) => {
      bar.value = done;
      state.textContent = message ?? `Into ${into}: ${Math.floor(100 * done)} %`;
    };
    try {
      const job = text === null ? documentJob : translateInParts;
      const content = await job(text ?? file, languages, this.#page.limits(), progress, running.signal);
      address = URL.createObjectURL(content);
      state.textContent = `In ${into}`;
      const name = file.name.replace(/(\.[^.]*)?$/, `.${languages.target}$1`);
      remove.before(element("a", { href: address, download: name, className: "firm" }, "Download"));
      this.#page.announce(`${file.name} is translated`);
    } catch (error) {
      if (running.signal.aborted) return;
      state.textContent = describe(error);
      state.className = "state failed";
      this.#page.announce(`${file.name}: ${state.textContent}`);
    }
    bar.remove();
    remove.textContent = "Remove";
    remove.ariaLabel = `Remove ${file.name}`;
  }
}

function isPlainText(file) {
  return file.type === "text/plain" || /\.(txt|text)$/i.test(file.name);
}

/** Decodes a file as UTF-16 if it has a byte order mark, else as UTF-8 if it is valid, else as Windows-1252. */
async function decoded(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const byteOrderMark = (bytes[0] << 8) | bytes[1];
  if (byteOrderMark === 0xfffe || byteOrderMark === 0xfeff) {
    return new TextDecoder(byteOrderMark === 0xfffe ? "utf-16le" : "utf-16be").decode(bytes);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}
