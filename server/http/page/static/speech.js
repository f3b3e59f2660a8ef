/** Reading aloud with voices of the device. Voices of other hosts, which would receive the text, are not used. */

import { interfaceChanges, showLabel, showTitle } from "./interface.js";
import { bcp47, languageName } from "./language_names.js";

const synthesis = globalThis.speechSynthesis;
let speaking = null; // the button whose text is being read

export class SpeechButton {
  #button;
  #label;
  #content;

  /** `label` is a key; `content()` returns `{ text, language }`, with null for an unknown language. */
  constructor(button, label, content) {
    this.#button = button;
    this.#label = label;
    this.#content = content;
    button.addEventListener("click", () => (speaking === this ? this.#stop() : this.#speak()));
    synthesis?.addEventListener("voiceschanged", () => this.update());
    addEventListener("pagehide", () => this.#stop());
    interfaceChanges.addEventListener("change", () => this.update());
    this.update();
  }

  /** Follows a changed text or language. */
  update() {
    const { text, language } = this.#content();
    const isSpeaking = speaking === this;
    const hasVoice = !language || Boolean(voiceOf(language));
    this.#button.disabled = !isSpeaking && (!text.trim() || !language || !hasVoice);
    this.#button.ariaPressed = String(isSpeaking);
    showLabel(this.#button, isSpeaking ? "listen.stop" : this.#label);
    if (hasVoice) showTitle(this.#button, isSpeaking ? "listen.stop" : this.#label);
    else showTitle(this.#button, "listen.noVoice", { language: () => languageName(language) });
  }

  #speak() {
    const { text, language } = this.#content();
    const voice = voiceOf(language);
    if (!voice) return;
    speaking?.#stop();
    speaking = this;
    // Sentence by sentence: some browsers stop reading within a long text.
    const sentences = [...new Intl.Segmenter(bcp47(language), { granularity: "sentence" }).segment(text)];
    for (const [index, { segment }] of sentences.entries()) {
      const utterance = new SpeechSynthesisUtterance(segment);
      utterance.voice = voice;
      utterance.lang = bcp47(voice.lang);
      utterance.addEventListener("error", () => this.#ended());
      if (index === sentences.length - 1) utterance.addEventListener("end", () => this.#ended());
      synthesis.speak(utterance);
    }
    this.update();
  }

  #stop() {
    if (speaking !== this) return;
    synthesis.cancel();
    this.#ended();
  }

  #ended() {
    if (speaking !== this) return;
    speaking = null;
    this.update();
  }
}

function voiceOf(language) {
  const wanted = bcp47(language).toLowerCase();
  const voices = (synthesis?.getVoices() ?? []).filter((voice) => voice.localService);
  const tagOf = (voice) => voice.lang.replaceAll("_", "-").toLowerCase();
  return (
    voices.find((voice) => tagOf(voice) === wanted) ??
    voices.find((voice) => tagOf(voice).split("-")[0] === wanted.split("-")[0]) ??
    null
  );
}
