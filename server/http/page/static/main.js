/** The page: creates its parts and connects their events. */

import { readAddress, writeAddress } from "./address.js";
import { Alternatives } from "./alternatives.js";
import { ErrorResponse, Unreachable, capabilities, detectedLanguage } from "./api.js";
import { needsKey } from "./api_key.js";
import { byId } from "./dom.js";
import { markedPairs } from "./doubts.js";
import { ErrorNotice } from "./error_notice.js";
import { Files } from "./files.js";
import { HistoryPanel } from "./history_panel.js";
import { clearText, interfaceLanguage, setInterfaceLanguage, showAll, showText, text } from "./interface.js";
import { AUTO, languageTitle } from "./language_names.js";
import { LanguagePicker } from "./language_picker.js";
import { Keeping } from "./keeping.js";
import { Languages } from "./languages.js";
import { LiveTranslation } from "./live_translation.js";
import { ModelNote } from "./model_note.js";
import { showNote } from "./note.js";
import { Output } from "./output.js";
import { SourceText } from "./source_text.js";
import { Toolbar } from "./toolbar.js";
import { TranslationHistory } from "./translation_history.js";
import { WordHighlights } from "./word_highlights.js";

const MAX_ANNOUNCED = 400; // characters; of longer translations a screen reader reads the length only
const RETRY_SECONDS = 3; // between attempts to read the capabilities of the server

showAll();
const announce = (message) => (byId("announcement").textContent = message);
const source = new SourceText({ area: byId("source"), mirror: byId("mirror"), count: byId("count"), clear: byId("clear") });
const languages = new Languages(
  new LanguagePicker(byId("source-language"), "source", "languages.from"),
  new LanguagePicker(byId("target-language"), "target", "languages.into"),
  byId("swap"),
);
const output = new Output(byId("output"));
const errorNotice = new ErrorNotice(byId("error-notice"));
const alternatives = new Alternatives(byId("alternatives"), output, announce);
const keeping = new Keeping(byId("keeping"), byId("keep"), { kept: () => live.now(), leave: () => output.focus(), announce });
const modelNote = new ModelNote(byId("model"));
const history = new TranslationHistory();
const shown = { source: "", target: "", pivot: null }; // languages of the translation on display
const highlights = new WordHighlights(source, output, () => shown, announce);
const toolbar = new Toolbar(
  () => ({ text: source.text, language: languages.readLanguage }),
  () => ({ text: output.text, language: shown.target || null }),
  announce,
);
let limits = { max_text_characters: Infinity, max_beam_size: 1, return_quality: false };
let isBehind = false; // the server may have been replaced since its last response
let leftLanguage = null; // of the text: it was the target before, and another one replaced it

const live = new LiveTranslation(
  () => {
    if (!languages.isReady || !source.text.trim() || source.excess) return null;
    const isDirect = Boolean(languages.pair) && !languages.pair.pivot; // tokens, which align the sentences, need it
    const details = { return_token_scores: isDirect, return_quality: limits.return_quality };
    if (keeping.memory) details.memory_id = keeping.memory;
    return { text: source.text, source: languages.source, target: languages.target, ...details };
  },
  {
    streamed: "",
    changed() {
      history.cancel();
      alternatives.close();
      keeping.close();
      highlights.clear();
      output.fade();
      clearText(byId("note"));
      setUsable(false);
    },
    begin(request) {
      this.streamed = "";
      errorNotice.clear();
      this.changed();
      if (request.target !== shown.target) output.clear();
    },
    delta(delta, request) {
      this.streamed += delta;
      // An unchanged text: perhaps it is in the target language, and the target changes with the response.
      if (request.source === AUTO && request.text.startsWith(this.streamed)) return;
      output.grow(this.streamed);
    },
    settle(translation, request, response) {
      const detected = translation.detected_language;
      if (request.source === AUTO) languages.showDetected(detected ?? null);
      if (translation.translated === false && detected && languages.leave(detected.language)) {
        leftLanguage = detected.language;
        live.now();
        return;
      }
      show(translation, request, response);
      if (isBehind) readCapabilities();
    },
    idle() {
      this.changed();
      errorNotice.clear();
      leftLanguage = null;
      modelNote.show(null);
      if (source.excess) showTooLong();
      if (source.text.trim()) return;
      output.clear();
      languages.showDetected(null);
      setUsable(false);
      writeState();
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

function show(translation, request, response) {
  Object.assign(shown, {
    source: languages.readLanguage ?? request.source,
    target: request.target,
    pivot: response.pivot ?? null,
  });
  source.language = languages.readLanguage;
  output.language = request.target;
  output.settle(translation.text, markedPairs(request.text, translation, shown));
  const note = showNote(byId("note"), translation, shown, leftLanguage && { language: leftLanguage, target: shown.target });
  leftLanguage = null;
  modelNote.show(response.model ?? null);
  keeping.follow(translation, () => ({ text: output.text, sentences: output.sentences(source.text) }), shown);
  setUsable(Boolean(translation.text.trim()));
  const isLong = translation.text.length > MAX_ANNOUNCED;
  const spoken = { count: translation.text.length, language: languageTitle(request.target), text: translation.text };
  announce([note, text(isLong ? "output.translated" : "output.spoken", spoken)].filter(Boolean).join(" "));
  writeState();
  if (translation.translated === false) return;
  languages.used();
  history.add({ source: shown.source, target: shown.target, text: request.text, translation: translation.text });
}

function showTooLong() {
  output.clear();
  errorNotice.showText("source.tooLong", { count: source.excess, limit: limits.max_text_characters }, "source.asFile", () =>
    files.translate(new File([source.text], `${text("source.fileName")}.txt`), source.text),
  );
}

function setUsable(isUsable) {
  toolbar.update(isUsable);
  byId("show-alternatives").disabled = !isUsable || limits.max_beam_size < 2;
  byId("keep").disabled = !isUsable;
}

/** Writes the state into the address; without the history it has no text. */
function writeState() {
  const written = history.isOn ? source.text : "";
  if (written || location.hash) writeAddress(languages.source, languages.target, written);
}

/** Returns the languages for a file. Detects the language of its text, and changes the target if that is the same. */
async function languagesOf(content) {
  if (languages.source === AUTO && content?.trim()) {
    const detected = await detectedLanguage(content, languages.target);
    if (detected && languages.source === AUTO) languages.leave(detected);
  }
  return { source: languages.source, target: languages.target };
}

/** Shows another text in other languages: of the address or the history. */
function open(entry) {
  if (languages.isReady) languages.choose(entry.source, entry.target);
  replaceText(entry.text);
}

function replaceText(content) {
  history.next();
  source.text = content;
  live.now();
}

/** Reads the capabilities of the server; retries until it answers. */
async function readCapabilities() {
  try {
    const server = await capabilities();
    isBehind = false;
    limits = server.limits;
    source.limit = limits.max_text_characters;
    modelNote.models = server.models;
    await keeping.read(limits.translation_memories);
    const before = [languages.source, languages.target].join();
    const address = readAddress();
    languages.offer(server.pairs, address && [address.source, address.target]);
    if ([languages.source, languages.target].join() !== before || !output.text) live.now();
  } catch (error) {
    if (!(error instanceof ErrorResponse || error instanceof Unreachable)) throw error;
    const seconds = needsKey(error) ? null : RETRY_SECONDS;
    if (seconds) setTimeout(readCapabilities, seconds * 1000);
    errorNotice.show({ error, seconds, retry: readCapabilities });
  }
}

function openAlternatives(place) {
  keeping.close();
  if (!place || limits.max_beam_size < 2 || byId("show-alternatives").disabled) return;
  alternatives.open(place, source.text.slice(...place.pair.source), shown, limits.max_beam_size);
}

source.addEventListener("type", () => (source.text.trim() ? live.typed() : live.now()));
source.addEventListener("clear", () => replaceText(""));
byId("source").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  live.now();
});
languages.addEventListener("change", () => live.now());
languages.addEventListener("swap", () => {
  const translated = output.text;
  history.next();
  languages.swap();
  if (translated.trim()) source.text = translated;
  live.now();
});
output.addEventListener("choose", ({ detail }) => openAlternatives(detail));
byId("keep").addEventListener("click", () => alternatives.close());
byId("show-alternatives").addEventListener("click", () => openAlternatives(output.place));
toolbar.addEventListener("use", () => history.flush());
byId("interface").value = interfaceLanguage();
byId("interface").addEventListener("change", () => setInterfaceLanguage(byId("interface").value));
addEventListener("online", () => (languages.isReady ? live.now() : readCapabilities()));
addEventListener("hashchange", () => {
  const address = readAddress();
  if (address) open(address);
});

const files = new Files(
  { list: byId("files"), drop: byId("drop"), input: byId("file") },
  {
    languages: languagesOf,
    limits: () => limits,
    fill: replaceText,
    announce,
  },
);
new HistoryPanel(history, open);
source.text = readAddress()?.text || source.text;
readCapabilities();
