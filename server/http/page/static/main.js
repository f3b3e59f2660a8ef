/** The page: creates its parts and connects their events. */

import { sentencePairs } from "./word_alignment.js";
import { copyText } from "./clipboard.js";
import { byId } from "./dom.js";
import { Files } from "./files.js";
import { AUTO, Languages, languageName } from "./languages.js";
import { WordHighlights } from "./word_highlights.js";
import { LiveTranslation } from "./live_translation.js";
import { Alternatives } from "./alternatives.js";
import { Output } from "./output.js";
import { ErrorNotice } from "./error_notice.js";
import { ErrorResponse, Unreachable, capabilities } from "./api.js";
import { SourceText } from "./source_text.js";

const MAX_ANNOUNCED = 400; // characters; of longer translations a screen reader reads the length only
const RETRY_SECONDS = 3; // between attempts to read the capabilities of the server

const announce = (text) => (byId("announcement").textContent = text);
const source = new SourceText({ area: byId("source"), mirror: byId("mirror"), count: byId("count"), clear: byId("clear") });
const languages = new Languages(byId("source-language"), byId("target-language"), byId("swap"));
const output = new Output(byId("output"));
const errorNotice = new ErrorNotice(byId("error-notice"));
const alternatives = new Alternatives(byId("alternatives"), output, announce);
const shown = { source: "", target: "", pivot: null }; // languages of the translation on display
const highlights = new WordHighlights(source, output, () => shown, announce);
let limits = { max_text_characters: Infinity, max_beam_size: 1 };
let isBehind = false; // the server may have been replaced since its last response

const live = new LiveTranslation(
  () => {
    if (!languages.isReady || !source.text.trim() || source.isTooLong) return null;
    const request = { text: source.text, source: languages.source, target: languages.target };
    // Tokens align the sentences. Translations through a pivot have none.
    return languages.pair && !languages.pair.pivot ? { ...request, return_token_scores: true } : request;
  },
  {
    streamed: "",
    changed() {
      alternatives.close();
      highlights.clear();
      output.fade();
      byId("note").textContent = "";
      setUsable(false);
    },
    begin(request) {
      this.streamed = "";
      errorNotice.clear();
      this.changed();
      if (request.target !== shown.target) output.clear();
    },
    delta(text) {
      this.streamed += text;
      output.grow(this.streamed);
    },
    settle(translation, request, response) {
      if (request.source === AUTO) languages.showDetected(translation.detected_language ?? null);
      Object.assign(shown, {
        source: languages.readLanguage ?? request.source,
        target: request.target,
        pivot: response.pivot ?? null,
      });
      source.language = languages.readLanguage;
      output.language = request.target;
      output.settle(translation.text, sentencePairs(request.text, translation.text, translation.sentences, shown));
      byId("note").textContent = remark(translation, response);
      setUsable(Boolean(translation.text.trim()));
      announce(
        translation.text.length > MAX_ANNOUNCED
          ? `Translated: ${translation.text.length} characters`
          : `${languageName(request.target)}: ${translation.text}`,
      );
      if (isBehind) readCapabilities();
    },
    idle() {
      this.changed();
      errorNotice.clear();
      if (source.text.trim()) return;
      output.clear();
      languages.showDetected(null);
    },
    error(event) {
      isBehind = true;
      errorNotice.show(event);
    },
    busy(isBusy) {
      byId("busy").classList.toggle("on", isBusy);
      byId("output").ariaBusy = String(isBusy);
    },
  },
);

function setUsable(isUsable) {
  byId("copy").disabled = !isUsable;
  byId("show-alternatives").disabled = !isUsable || limits.max_beam_size < 2;
}

/** Returns the note below a translation: cut sentences, or the pivot language. */
function remark(translation, response) {
  if (translation.finish_reason === "length") return "A sentence was cut off: it is too long.";
  if (translation.finish_reason === "repetition") return "A sentence was cut off where it began to repeat itself.";
  if (response.pivot) return `Translated through ${languageName(response.pivot)}`;
  return "";
}

/** Reads the capabilities of the server; retries until it answers. */
async function readCapabilities() {
  try {
    const server = await capabilities();
    isBehind = false;
    limits = server.limits;
    source.limit = limits.max_text_characters;
    const before = [languages.source, languages.target].join();
    languages.offer(server);
    if ([languages.source, languages.target].join() !== before || !output.text) live.now();
  } catch (error) {
    if (!(error instanceof ErrorResponse || error instanceof Unreachable)) throw error;
    setTimeout(readCapabilities, RETRY_SECONDS * 1000);
    errorNotice.show({ error, seconds: RETRY_SECONDS, retry: readCapabilities });
  }
}

function openAlternatives(place) {
  if (!place || limits.max_beam_size < 2 || byId("show-alternatives").disabled) return;
  alternatives.open(place, source.text.slice(...place.pair.source), shown, limits.max_beam_size);
}

source.addEventListener("type", () => (source.text.trim() ? live.typed() : live.now()));
source.addEventListener("clear", () => live.now());
languages.addEventListener("change", () => live.now());
languages.addEventListener("swap", () => {
  const translated = output.text;
  languages.swap();
  if (translated.trim()) source.text = translated;
  live.now();
});
output.addEventListener("choose", ({ detail }) => openAlternatives(detail));
byId("show-alternatives").addEventListener("click", () => openAlternatives(output.place));
byId("copy").addEventListener("click", async () => {
  byId("copy-label").textContent = (await copyText(output.text, byId("output"))) ? "Copied" : "Press Ctrl+C";
  announce(byId("copy-label").textContent);
  setTimeout(() => (byId("copy-label").textContent = "Copy"), 2000);
});
addEventListener("online", () => (languages.isReady ? live.now() : readCapabilities()));

new Files(
  { list: byId("files"), drop: byId("drop"), input: byId("file") },
  {
    languages: () => ({ source: languages.source, target: languages.target }),
    limits: () => limits,
    fill(text) {
      source.text = text;
      live.now();
    },
    announce,
  },
);
readCapabilities();
