// ==UserScript==
// @name         Translate this page with Kvasir
// @namespace    kvasir
// @version      0.1.0
// @description  Translates the page through a Kvasir server on this machine. Alt+Shift+K, or the menu of the script.
// @match        *://*/*
// @noframes
// @grant        GM_xmlhttpRequest
// @grant        GM_getValue
// @grant        GM_setValue
// @grant        GM_registerMenuCommand
// @connect      127.0.0.1
// @connect      localhost
// ==/UserScript==

/* Runs in Tampermonkey and Violentmonkey. Links and formatting stay; the original is shown on hover. */
(() => {
  "use strict";

  const SETTINGS = { server: "http://127.0.0.1:8000", target: navigator.language.split("-")[0], key: "" };
  const MAX_TEXTS = 20; // per request
  const MAX_CHARACTERS = 4000; // per request
  const MAX_REQUESTS = 2; // at the same time: one is decoded while the next one arrives
  const MAX_TRIES = 5;
  const SETTLE_MS = 300; // after a change of the page, before new texts are translated
  const INLINE = "a abbr b bdi bdo cite del dfn em font i ins label mark q s small span strong sub sup time tt u".split(" ");
  // Neither sent nor changed. Inside a sentence each is an image for the server, which keeps its place.
  const OPAQUE =
    "script, style, noscript, template, code, kbd, samp, var, pre, math, svg, img, picture, video, audio, canvas, iframe, " +
    "object, embed, br, wbr, hr, button, input, select, textarea, meter, progress, kvasir-text, kvasir-tool, " +
    "[translate=no], .notranslate, [contenteditable='true'], [contenteditable='']";

  const setting = (name) => (typeof GM_getValue === "function" ? GM_getValue(name, SETTINGS[name]) : SETTINGS[name]);
  let run = null; // { units, waiting, running, failed, aborts, observer } while the page is translated

  const isOpaque = (node) => node.nodeType === Node.ELEMENT_NODE && node.matches(OPAQUE);

  /** Whether a node is part of a sentence: a text, or an element within a line. */
  function isInline(node) {
    if (node.nodeType === Node.TEXT_NODE) return true;
    if (node.nodeType !== Node.ELEMENT_NODE) return node.nodeType === Node.COMMENT_NODE;
    if (node.matches("script, style, noscript, template")) return true;
    const { display } = getComputedStyle(node);
    return display.startsWith("inline") && [...node.children].every((child) => isOpaque(child) || isInline(child));
  }

  /** Collects units: runs of neighbouring nodes that make up a text, at any depth below `parent`. */
  function collect(parent, units = []) {
    if (isOpaque(parent)) return units;
    let nodes = [];
    for (const node of [...parent.childNodes, null]) {
      if (node && isInline(node)) {
        nodes.push(node);
        continue;
      }
      const elements = [];
      const html = nodes.map((each) => serialized(each, elements)).join("");
      const text = html.replace(/<[^>]*>/g, "");
      if (/\p{L}/u.test(text)) units.push({ nodes, elements, html, text: decoded(text), shown: null, streamed: "" });
      nodes = [];
      if (node) collect(node, units);
    }
    return units;
  }

  /** Returns markup without the page's attributes: each tag has the index of its element as id. */
  function serialized(node, elements) {
    if (node.nodeType === Node.TEXT_NODE) return node.data.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
    if (node.nodeType !== Node.ELEMENT_NODE) return "";
    const id = elements.push(node) - 1;
    if (isOpaque(node)) return `<${node.localName === "br" ? "br" : "img"} id="${id}">`;
    const name = INLINE.includes(node.localName) ? node.localName : "span";
    return `<${name} id="${id}">${[...node.childNodes].map((child) => serialized(child, elements)).join("")}</${name}>`;
  }

  const decoded = (text) => text.replace(/&(lt|gt|amp);/g, (_, name) => ({ lt: "<", gt: ">", amp: "&" })[name]);

  /** Returns the translation as copies of the unit's elements. Never parsed as HTML, so that it cannot contain a script. */
  function built(html, elements) {
    const root = document.createElement("kvasir-text");
    const stack = [root];
    for (const [, closing, id, text] of html.matchAll(/<(\/?)[a-z]+(?:[^>]*?\bid="(\d+)")?[^>]*>|([^<]+)/g)) {
      if (text !== undefined) stack.at(-1).append(decoded(text));
      else if (closing) stack.length > 1 && stack.pop();
      else {
        const element = elements[Number(id)];
        if (!element) continue;
        const copy = element.cloneNode(isOpaque(element));
        stack.at(-1).append(copy);
        if (!isOpaque(element)) stack.push(copy);
      }
    }
    return root;
  }

  function show(unit, html) {
    const translation = built(html, unit.elements);
    translation.unit = unit;
    const before = unit.shown ? [unit.shown] : unit.nodes;
    if (!before[0].isConnected) return; // the page has removed it
    before[0].before(translation);
    for (const node of before) node.remove();
    unit.shown = translation;
  }

  function restore(unit) {
    if (unit.shown?.isConnected) unit.shown.replaceWith(...unit.nodes);
    unit.shown = null;
  }

  /** Whether the translation has each element once: otherwise a link or an image would be missing. */
  function isComplete(unit, html) {
    return new Set(Array.from(html.matchAll(/<[a-z]+[^>]*?\bid="(\d+)"/g), ([, id]) => id)).size === unit.elements.length;
  }

  /** Sends a request. Calls `read(body so far)` while the body arrives. Resolves to `{ status, body, retryAfter }`. */
  function send(content, read, aborts) {
    const headers = { "Content-Type": "application/json" };
    if (setting("key")) headers.Authorization = `Bearer ${setting("key")}`;
    const request = { method: "POST", url: `${setting("server").replace(/\/$/, "")}/v1/translate`, headers };
    const data = JSON.stringify(content);
    if (typeof GM_xmlhttpRequest !== "function") return sendFromPage(request, data, read, aborts);
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error("the server does not answer"));
      const running = GM_xmlhttpRequest({
        ...request,
        data,
        onprogress: ({ status, responseText }) => status === 200 && read(responseText ?? ""),
        onload: ({ status, responseText, responseHeaders }) =>
          resolve({ status, body: responseText, retryAfter: Number(/^retry-after: *(\d+)/im.exec(responseHeaders)?.[1]) }),
        ...{ onerror: fail, ontimeout: fail, onabort: fail },
      });
      aborts.add(() => running.abort?.());
    });
  }

  /** Without a script manager: the server must allow the origin of the page. */
  async function sendFromPage({ url, ...request }, data, read, aborts) {
    const controller = new AbortController();
    aborts.add(() => controller.abort());
    const response = await fetch(url, { ...request, body: data, signal: controller.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let body = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { status: response.status, body, retryAfter: Number(response.headers.get("retry-after")) };
      body += value;
      if (response.ok) read(body);
    }
  }

  /** Translates units in one stream, and shows each text as it arrives. */
  async function translate(units, current) {
    let from = 0;
    let last = null;
    const read = (body) => {
      const end = body.lastIndexOf("\n\n");
      if (current !== run || end < from) return;
      for (const event of body.slice(from, end).split("\n\n")) {
        const [, name, data] = /^event: *(.*)\ndata: *(.*)$/m.exec(event) ?? [];
        if (name && name !== "text") last = { name, content: JSON.parse(data) };
        if (name !== "text") continue; // or a heartbeat
        const { index, text } = JSON.parse(data);
        const unit = units[index];
        unit.streamed += text;
        if (!unit.html.startsWith(unit.streamed)) show(unit, unit.streamed);
      }
      from = end + 2;
    };
    const content = { text: units.map(({ html }) => html), source: "auto", target: setting("target"), format: "html", stream: true };
    for (let tries = 1; ; tries += 1) {
      const { status, body, retryAfter } = await send(content, read, current.aborts);
      if (current !== run) return;
      if (status === 200) {
        read(body);
        break;
      }
      const isBusy = status === 429 || status === 503;
      const message = /"message": *"((?:[^"\\]|\\.)*)"/.exec(body)?.[1];
      if (!isBusy || tries === MAX_TRIES) throw new Error(message ?? `the server answered with status ${status}`);
      await new Promise((resolve) => setTimeout(resolve, 1000 * (retryAfter || tries)));
    }
    if (last?.name !== "done") throw new Error(last?.content.error.message ?? "the response was interrupted");
    for (const [index, { text, translated }] of last.content.translations.entries()) {
      if (translated && isComplete(units[index], text)) show(units[index], text);
      else restore(units[index]);
    }
  }

  /** Takes the waiting units nearest to the visible part of the page. */
  function nextUnits(waiting) {
    const distance = ({ nodes: [node] }) => {
      const { top, bottom } = (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement)?.getBoundingClientRect() ?? {};
      return Math.max(0, -bottom, top - innerHeight) || 0;
    };
    const ranked = waiting.map((unit) => [distance(unit), unit]).sort(([one], [other]) => one - other);
    const nearest = ranked.slice(0, MAX_TEXTS).map(([, unit]) => unit);
    let characters = 0;
    return nearest.filter((unit, index) => (characters += unit.html.length) <= MAX_CHARACTERS || index === 0);
  }

  async function work(current) {
    current.running += 1;
    while (current === run && current.waiting.length) {
      const units = nextUnits(current.waiting);
      current.waiting = current.waiting.filter((unit) => !units.includes(unit));
      try {
        await translate(units, current);
      } catch (error) {
        if (current !== run) return;
        units.forEach(restore);
        current.waiting = [];
        current.failed = error.message;
      }
      showStatus();
    }
    current.running -= 1;
    if (current === run) showStatus();
  }

  function add(units) {
    run.units.push(...units);
    run.waiting.push(...units);
    for (let count = run.running; count < MAX_REQUESTS && run.waiting.length; count += 1) work(run);
  }

  function start() {
    run = { units: [], waiting: [], running: 0, failed: "", aborts: new Set(), observer: null, timer: null };
    const isOwn = (node) => node.localName?.startsWith("kvasir-");
    const addNew = () => {
      const old = new Set(run.units.map(({ nodes }) => nodes[0]));
      add(collect(document.body).filter(({ nodes }) => !old.has(nodes[0])));
    };
    run.observer = new MutationObserver((changes) => {
      if (changes.every(({ addedNodes }) => [...addedNodes].every(isOwn))) return;
      clearTimeout(run.timer);
      run.timer = setTimeout(addNew, SETTLE_MS);
    });
    add(collect(document.body));
    run.observer.observe(document.body, { childList: true, subtree: true });
    showStatus();
  }

  function stop() {
    const { units, aborts, observer, timer } = run;
    run = null;
    observer.disconnect();
    clearTimeout(timer);
    for (const abort of aborts) abort();
    units.forEach(restore);
    showStatus();
  }

  const toggle = () => (run ? stop() : start());
  function tool(role, styles) {
    const element = document.createElement("kvasir-tool");
    element.setAttribute("role", role);
    Object.assign(element.style, {
      position: "fixed", zIndex: "2147483647", padding: "0.4em 0.8em", borderRadius: "0.5em", maxWidth: "40em",
      background: "#231e16", color: "#fffdf8", font: "14px/1.4 system-ui, sans-serif", ...styles,
    });
    return element;
  }

  const status = tool("status", { right: "1em", bottom: "1em" });
  const original = tool("tooltip", { pointerEvents: "none" });

  function showStatus() {
    const done = run && run.units.length - run.waiting.length;
    status.textContent = run?.failed ? `Kvasir: ${run.failed}` : run?.running ? `Kvasir: ${done} / ${run.units.length}` : "";
    if (status.textContent) document.body.append(status);
    else status.remove();
  }

  document.addEventListener("pointerover", ({ target }) => {
    const translation = target.closest?.("kvasir-text");
    if (!translation?.unit) return original.remove();
    const { left, top, bottom } = translation.getBoundingClientRect();
    original.textContent = translation.unit.text.replace(/\s+/g, " ");
    const [below, above] = [`${bottom + 4}px`, `${innerHeight - top + 4}px`];
    const place = bottom < innerHeight - 80 ? { top: below, bottom: "auto" } : { top: "auto", bottom: above };
    Object.assign(original.style, { left: `${Math.max(0, left)}px`, ...place });
    document.body.append(original);
  });

  document.addEventListener("keydown", (event) => {
    if (event.altKey && event.shiftKey && event.code === "KeyK") toggle();
  });
  if (typeof GM_registerMenuCommand === "function") {
    GM_registerMenuCommand("Translate this page, or show the original", toggle);
    const labels = { target: "Language to translate into", server: "Address of the server", key: "API key" };
    for (const [name, label] of Object.entries(labels)) {
      GM_registerMenuCommand(`${label} …`, () => {
        const value = prompt(label, setting(name));
        if (value !== null) GM_setValue(name, value.trim());
      });
    }
  }
})();
