/** Files: dropped or opened, translated in parts or as documents, and offered for download. */

import { documentJob } from "./documents.js";
import { element } from "./dom.js";
import { errorText, showError } from "./error_texts.js";
import { translateInParts } from "./file_parts.js";
import { formatted, showLabel, showText, text as interfaceText } from "./interface.js";
import { languageName } from "./language_names.js";

export class Files {
  #elements;
  #page;

  /** `page` has `languages(text)`, a promise, `limits()`, `fill(text)` for a short text, and `announce(text)`. */
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
        this.#page.announce(interfaceText("files.opened", { name: file.name }));
      } else {
        this.translate(file, text);
      }
    }
  }

  /** Translates a file and lists it. `text` is its content if it is plain text, else null. */
  async translate(file, text) {
    const running = new AbortController();
    const languages = await this.#page.languages(text);
    const { name } = file;
    const language = () => languageName(languages.target);
    const bar = element("progress", { max: 1, value: 0 });
    showLabel(bar, "files.progress", { name });
    const state = element("p", { className: "state quiet" });
    showText(state, "files.into", { language });
    const remove = element("button", { type: "button", className: "plain" });
    showText(remove, "files.cancel");
    showLabel(remove, "files.cancelNamed", { name });
    const item = element("li", {}, element("p", { className: "name", title: name }, name), state, remove, bar);
    this.#elements.list.append(item);
    item.scrollIntoView({ block: "nearest" });
    let address = null;
    remove.addEventListener("click", () => {
      running.abort();
      if (address) URL.revokeObjectURL(address);
      item.remove();
    });
    const progress = (done, sent) => {
      bar.value = done;
      const percent = () => formatted(Math.floor(100 * (sent ?? done)) / 100, { style: "percent" });
      showText(state, sent === undefined ? "files.percent" : "files.sending", { language, percent });
    };
    try {
      const translated = text === null ? documentJob : translateInParts;
      const { content, job } = await translated(text ?? file, languages, this.#page.limits(), progress, running.signal);
      address = URL.createObjectURL(content);
      const [texts, changed] = [job?.num_texts, job?.num_translated];
      if (changed < texts) showText(state, "files.someDone", { language, texts, changed });
      else showText(state, "files.done", { language });
      if (job?.captions) {
        const { joined, cuts, too_fast: fast } = job.captions;
        const captions = element("p", { className: "state quiet" });
        showText(captions, "files.captions", { joined, cuts, fast });
        state.after(captions);
      }
      const download = name.replace(/(\.[^.]*)?$/, `.${languages.target}$1`);
      const link = element("a", { href: address, download, className: "firm" });
      showText(link, "files.download");
      remove.before(link);
      this.#page.announce(interfaceText("files.translated", { name }));
    } catch (error) {
      if (running.signal.aborted) return;
      showError(state, error);
      state.className = "state failed";
      this.#page.announce(interfaceText("files.failed", { name, message: errorText(error) }));
    }
    bar.remove();
    showText(remove, "files.remove");
    showLabel(remove, "files.removeNamed", { name });
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
