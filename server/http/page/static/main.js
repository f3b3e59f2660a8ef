/** The page: its parts, and what each of them tells the others. */

import { sentencePairs } from "./word_alignment.js";
import { copyText } from "./clipboard.js";
import { byId } from "./dom.js";
import { Files } from "./files.js";
import { AUTO, Languages, languageName } from "./languages.js";
import { Lights } from "./word_highlights.js";
import { LiveTranslation } from "./live_translation.js";
import { OtherTranslations } from "./alternatives.js";
import { Output } from "./output.js";
import { ProblemNotice } from "./error_notice.js";
import { Refused, Unreachable, abilities } from "./api.js";
import { SourceText } from "./source_text.js";

const MAX_HEARD = 400; // characters of a translation that a screen reader is handed whole
const RETRY_SECONDS = 3; // of the first questions to the server

const announce = (text) => (byId("announcement").textContent = text);
const source = new SourceText({ area: byId("source"), mirror: byId("mirror"), count: byId("count"), clear: byId("clear") });
const languages = new Languages(byId("source-language"), byId("target-language"), byId("swap"));
const output = new Output(byId("output"));
const problem = new ProblemNotice(byId("problem"));
const others = new OtherTranslations(byId("others"), output, announce);
const shown = { source: "", target: "", pivot: null }; // the languages of the translation that is there
const lights = new Lights(source, output, () => shown, announce);
let limits = { max_text_characters: Infinity, max_beam_size: 1 };
let isBehind = false; // the server may be another one since we last heard of it

const live = new LiveTranslation(
  () => {
    if (!languages.isReady || !source.text.trim() || source.isTooLong) return null;
    const asked = { text: source.text, source: languages.source, target: languages.target };
    // Its tokens say which sentence is whose. Through a pivot there are none.
    return languages.pair && !languages.pair.pivot ? { ...asked, return_token_scores: true } : asked;
  },
  {
    fresh: "",
    changed() {
      others.close();
      lights.off();
      output.fade();
      byId("note").textContent = "";
      setUsable(false);
    },
    begin(asked) {
      this.fresh = "";
      problem.clear();
      this.changed();
      if (asked.target !== shown.target) output.clear();
    },
    piece(text) {
      this.fresh += text;
      output.grow(this.fresh);
    },
    settle(translation, asked, answer) {
      if (asked.source === AUTO) languages.detected(translation.detected_language ?? null);
      Object.assign(shown, {
        source: languages.readLanguage ?? asked.source,
        target: asked.target,
        pivot: answer.pivot ?? null,
      });
      source.language = languages.readLanguage;
      output.language = asked.target;
      output.settle(translation.text, sentencePairs(asked.text, translation.text, translation.sentences, shown));
      byId("note").textContent = remark(translation, answer);
      setUsable(Boolean(translation.text.trim()));
      announce(
        translation.text.length > MAX_HEARD
          ? `Translated: ${translation.text.length} characters`
          : `${languageName(asked.target)}: ${translation.text}`,
      );
      if (isBehind) learn();
    },
    nothing() {
      this.changed();
      problem.clear();
      if (source.text.trim()) return;
      output.clear();
      languages.detected(null);
    },
    problem(what) {
      isBehind = true;
      problem.show(what);
    },
    busy(isBusy) {
      byId("busy").classList.toggle("on", isBusy);
      byId("output").ariaBusy = String(isBusy);
    },
  },
);

function setUsable(isUsable) {
  byId("copy").disabled = !isUsable;
  byId("ask-others").disabled = !isUsable || limits.max_beam_size < 2;
}

/** What is worth knowing of an answer, and not in its text. */
function remark(translation, answer) {
  if (translation.finish_reason === "length") return "Not all of it could be translated: a sentence is too long.";
  if (translation.finish_reason === "repetition") return "A sentence was cut off where it began to repeat itself.";
  if (answer.pivot) return `Translated through ${languageName(answer.pivot)}`;
  return "";
}

/** What the server can; asked again until it answers. */
async function learn() {
  try {
    const able = await abilities();
    isBehind = false;
    limits = able.limits;
    source.limit = limits.max_text_characters;
    const before = [languages.source, languages.target].join();
    languages.offer(able);
    if ([languages.source, languages.target].join() !== before || !output.text) live.now();
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Unreachable)) throw error;
    setTimeout(learn, RETRY_SECONDS * 1000);
    problem.show({ error, seconds: RETRY_SECONDS, retry: learn });
  }
}

function openOthers(place) {
  if (!place || limits.max_beam_size < 2 || byId("ask-others").disabled) return;
  others.open(place, source.text.slice(...place.pair.source), shown, limits.max_beam_size);
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
output.addEventListener("choose", ({ detail }) => openOthers(detail));
byId("ask-others").addEventListener("click", () => openOthers(output.place));
byId("copy").addEventListener("click", async () => {
  byId("copy-label").textContent = (await copyText(output.text, byId("output"))) ? "Copied" : "Press Ctrl+C";
  announce(byId("copy-label").textContent);
  setTimeout(() => (byId("copy-label").textContent = "Copy"), 2000);
});
addEventListener("online", () => (languages.isReady ? live.now() : learn()));

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
learn();
