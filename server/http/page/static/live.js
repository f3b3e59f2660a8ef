/** The page for text that is still being spoken: the source on the left, what is committed on the right. */

import { capabilities, ErrorResponse, Unreachable } from "./api.js";
import { byId, element } from "./dom.js";
import { ErrorNotice } from "./error_notice.js";
import { showAll, showText } from "./interface.js";
import { bcp47, languageTitle, readMissingNames } from "./language_names.js";
import { store, stored } from "./storage.js";

const RETRY_SECONDS = 3;
const MAX_SHOWN = 20_000; // characters of the translation
const LANGUAGES = "kvasir-live-languages";
const SIZE = "kvasir-live-size";

const [source, output, committed, draft] = ["source", "output", "committed", "draft"].map(byId);
const [from, into] = ["source-language", "target-language"].map(byId);
const notice = new ErrorNotice(byId("notice"));
const address = new URLSearchParams(location.hash.slice(1));

let pairs = [];
let socket = null;
let sent = []; // characters (code points) that this session has, or will have once it is open
let skipped = 0; // characters of the text before them, which earlier sessions translated
let retrying = null;
let done = 0; // characters of the text whose translation is shown

function open() {
  const url = new URL(`v1/live?${new URLSearchParams({ source: from.value, target: into.value, ...key() })}`, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const opened = new WebSocket(url);
  socket = opened;
  byId("screen").hidden = true;
  skipped = done;
  sent = [];
  opened.addEventListener("open", () => (notice.clear(), send()));
  opened.addEventListener("message", ({ data }) => opened === socket && take(JSON.parse(data)));
  opened.addEventListener("close", ({ code }) => opened === socket && closed(code));
}

const key = () => {
  const value = address.get("key") ?? stored("kvasir-api-key", "");
  return value ? { api_key: value } : {};
};

/** Sends what has changed in the text. */
function send() {
  if (socket?.readyState !== WebSocket.OPEN) return;
  const text = [...source.value].slice(skipped);
  let same = 0;
  while (same < Math.min(text.length, sent.length) && text[same] === sent[same]) same += 1;
  if (same === sent.length && same === text.length) return;
  const rest = text.slice(same).join("").toWellFormed();
  socket.send(JSON.stringify(same === sent.length ? { append: rest } : { replace_from: same, text: rest }));
  sent = text;
}

function take(event) {
  if (event.session) showScreen(event.session.id);
  if (event.error) notice.show({ error: new ErrorResponse(event.error.message, 400, event.error.code, null), seconds: null, retry: restart });
  if (!event.committed) return;
  const wasAtEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
  for (const { text, end } of event.committed) {
    committed.append(element("span", { textContent: text }));
    done = Math.max(done, skipped + end);
  }
  draft.textContent = event.draft;
  while (committed.textContent.length > MAX_SHOWN) committed.firstChild.remove();
  if (wasAtEnd) output.scrollTop = output.scrollHeight;
}

/** Opens another session for the text that is not translated yet, unless this one ended because nothing came. */
function closed(code) {
  socket = null;
  draft.textContent = "";
  if (code !== 1000) tryAgain(new Unreachable());
}

function tryAgain(error) {
  notice.show({ error, seconds: RETRY_SECONDS, retry: start });
  clearTimeout(retrying);
  retrying = setTimeout(() => socket ?? start(), RETRY_SECONDS * 1000);
}

function restart() {
  socket?.close();
  notice.clear();
  source.value = draft.textContent = "";
  committed.replaceChildren();
  done = 0;
  open();
}

function showScreen(id) {
  const screen = byId("screen");
  screen.href = `#${new URLSearchParams({ watch: id, language: into.value })}`;
  screen.hidden = false;
}

function showLanguages() {
  const options = (tags) => tags.map((tag) => element("option", { value: tag, textContent: languageTitle(tag) }));
  const chosen = [from.value, into.value].some(Boolean) ? [from.value, into.value] : stored(LANGUAGES, []);
  from.replaceChildren(...options([...new Set(pairs.map((pair) => pair.source))]));
  if (pairs.some((pair) => pair.source === chosen[0])) from.value = chosen[0];
  const targets = pairs.filter((pair) => pair.source === from.value).map((pair) => pair.target);
  into.replaceChildren(...options(targets));
  if (targets.includes(chosen[1])) into.value = chosen[1];
  from.disabled = into.disabled = false;
  output.lang = bcp47(into.value);
  source.lang = bcp47(from.value);
  showPrivacy();
}

function choose() {
  showLanguages();
  store(LANGUAGES, [from.value, into.value]);
  stopListening();
  restart();
}

async function start() {
  try {
    pairs = [...(await capabilities()).pairs].filter(({ pivot }) => !pivot);
  } catch (error) {
    if (error instanceof Unreachable) tryAgain(error);
    else notice.show({ error, seconds: null, retry: start });
    return;
  }
  await readMissingNames([...new Set(pairs.flatMap((pair) => [pair.source, pair.target]))]);
  showLanguages();
  open();
}

/** Shows the translation of another window's session alone. */
function watch(id) {
  document.body.classList.add("watching");
  output.lang = bcp47(address.get("language") ?? "");
  const events = new EventSource(`v1/live/${encodeURIComponent(id)}?${new URLSearchParams(key())}`);
  events.addEventListener("message", ({ data }) => {
    const event = JSON.parse(data);
    if (event.end) events.close();
    take(event);
    output.scrollTop = output.scrollHeight;
  });
}

// Speech, where the browser recognises it.

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
let recognition = null;
let isLocal = false;

async function showPrivacy() {
  if (!Recognition) return;
  byId("listen").hidden = false;
  const request = { langs: [bcp47(from.value)], processLocally: true };
  isLocal = (await Recognition.available?.(request).catch(() => "")) === "available";
  showText(byId("privacy"), isLocal ? "live.local" : "live.remote");
}

function listen() {
  recognition = new Recognition();
  Object.assign(recognition, { lang: bcp47(from.value), continuous: true, interimResults: true, processLocally: isLocal });
  let before = source.value && !/\s$/.test(source.value) ? `${source.value} ` : source.value;
  const mine = recognition;
  recognition.addEventListener("result", ({ results, resultIndex }) => {
    let heard = "";
    for (const result of [...results].slice(resultIndex)) {
      // What is final ends a line, and so a sentence: recognisers write no full stops.
      if (result.isFinal) before += `${result[0].transcript.trim()}\n`;
      else heard += result[0].transcript;
    }
    source.value = before + heard.trimStart();
    source.scrollTop = source.scrollHeight;
    send();
  });
  recognition.addEventListener("error", ({ error }) => {
    if (["no-speech", "aborted"].includes(error)) return; // it goes on after a silence
    stopListening();
    showText(byId("privacy"), error === "not-allowed" ? "live.noMicrophone" : "live.noSpeech");
  });
  recognition.addEventListener("end", () => mine === recognition && mine.start());
  recognition.start();
  showListening();
}

function stopListening() {
  const stopped = recognition;
  recognition = null;
  stopped?.stop();
  showListening();
}

function showListening() {
  byId("listen").ariaPressed = String(Boolean(recognition));
  showText(byId("listen"), recognition ? "live.stop" : "live.listen");
}

function resize(factor) {
  const size = Math.min(Math.max(stored(SIZE, 1.6) * factor, 0.8), 8);
  store(SIZE, size);
  output.style.fontSize = `${size}rem`;
}

source.addEventListener("input", () => (socket ? send() : open()));
from.addEventListener("change", choose);
into.addEventListener("change", choose);
byId("restart").addEventListener("click", restart);
byId("listen").addEventListener("click", () => (recognition ? stopListening() : listen()));
byId("smaller").addEventListener("click", () => resize(1 / 1.2));
byId("larger").addEventListener("click", () => resize(1.2));
showAll();
resize(1);
if (address.has("watch")) watch(address.get("watch"));
else start();
