/** Buttons for the text and its translation: copy, download, listen. */

import { byId } from "./dom.js";
import { showText, text } from "./interface.js";
import { copyText, saveText } from "./saving.js";
import { SpeechButton } from "./speech.js";

const COPIED_MS = 2000;

export class Toolbar extends EventTarget {
  #speech;

  /** `source()` and `output()` return `{ text, language }`. Dispatches "use" when the translation is copied or saved. */
  constructor(source, output, announce) {
    super();
    this.#speech = [
      new SpeechButton(byId("listen-source"), "listen.source", source),
      new SpeechButton(byId("listen-output"), "listen.output", output),
    ];
    byId("copy").addEventListener("click", async () => {
      this.dispatchEvent(new Event("use"));
      const isCopied = await copyText(output().text, byId("output"));
      showText(byId("copy-label"), isCopied ? "output.copied" : "output.pressCopy");
      announce(byId("copy-label").textContent);
      setTimeout(() => showText(byId("copy-label"), "output.copy"), COPIED_MS);
    });
    byId("download").addEventListener("click", () => {
      this.dispatchEvent(new Event("use"));
      const { text: translation, language } = output();
      saveText(translation, `${text("output.fileName")}.${language}.txt`);
    });
  }

  /** Follows changed texts; without a translation nothing can be copied or saved. */
  update(hasTranslation) {
    byId("copy").disabled = byId("download").disabled = !hasTranslation;
    for (const button of this.#speech) button.update();
  }
}
