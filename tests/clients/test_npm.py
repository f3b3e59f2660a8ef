"""The clients of npm, in Node."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.clients.environments import node_packages, run
from tests.end_to_end.servers import started

DEEPL_NODE = """
import * as deepl from "deepl-node";
const client = new deepl.Translator("any key", {serverUrl: process.argv[1]});
const one = await client.translateText("Good morning.", null, "de");
const many = await client.translateText(["Good morning.", "..."], "en", "de", {modelType: "latency_optimized"});
const targets = await client.getTargetLanguages();
const usage = await client.getUsage();
const terms = new deepl.GlossaryEntries({entries: {station: "Halt"}});
const glossary = await client.createGlossary("Travel", "en", "de", terms);
const kept = await client.translateText("Where is the station?", "en", "de", {glossary});
const entries = (await client.getGlossaryEntries(glossary)).entries();
await client.deleteGlossary(glossary);
const tags = {tagHandling: "html", tagHandlingVersion: "v2"};
const marked = await client.translateText("<i>Good</i> morning.", "en", "de", tags);
let refused = "", missing = "";
try { await new deepl.DeepLClient("any key", {serverUrl: process.argv[1]}).getAllStyleRules(); }
catch (error) { missing = error.message; }
try { await client.translateText("Tea.", null, "ja"); } catch (error) { refused = error.message; }
console.log(JSON.stringify({
  one: one.text, detected: one.detectedSourceLang, billed: one.billedCharacters, many: many.map(each => each.text),
  targets: targets.map(each => each.code), count: usage.character.count, kept: kept.text, entries, refused, missing,
  marked: marked.text,
}));
"""

TRANSLATE = """
import translate from "translate";
translate.engine = "libre";
translate.url = process.argv[1] + "/translate";
console.log(JSON.stringify(await translate("Good morning.", {from: "en", to: "de"})));
"""

LIBRETRANSLATE = """
import { translate } from "libretranslate";
const [, url] = process.argv;
const named = await translate({query: "Good morning.", source: "en", target: "de", apiurl: url});
const detected = await translate({query: "Where is the railway station?", source: "auto", target: "de", apiurl: url});
console.log(JSON.stringify({named, detected}));
"""


GOOGLE_API_X = """
import translate from "google-translate-api-x";
const [, url] = process.argv;
const requestFunction = (address, request) => {
  const {pathname, search} = new URL(address);
  return fetch(url + pathname + search, request);
};
const one = await translate("Good morning.", {from: "en", to: "de", requestFunction});
const many = await translate(["Good morning.", "Thank you."], {to: "de", requestFunction});
const single = await translate("Good morning.", {to: "de", requestFunction, forceBatch: false});
console.log(JSON.stringify({
  one: one.text, many: many.map(each => each.text), single: single.text,
  detected: [many[0].from.language.iso, single.from],
}));
"""

GOOGLE_API = """
import { translate } from "@vitalets/google-translate-api";
const { text, raw } = await translate("Good morning.", {to: "de", host: process.argv[1].replace("https://", "")});
console.log(JSON.stringify([text, raw.src]));
"""

OPENAI = """
import OpenAI from "openai";
const client = new OpenAI({baseURL: process.argv[1] + "/v1", apiKey: "any", maxRetries: 0});
const model = "kvasir:en-de", content = "My brother has five dogs. " + Array.from(
  {length: 20}, (_, day) => `On day ${day} they run from the house to the river and back.`).join(" ");
const messages = [{role: "user", content}];
const parts = [];
for await (const chunk of await client.chat.completions.create({model, messages, stream: true})) {
  parts.push(chunk.choices[0]?.delta?.content ?? "");
}
const whole = await client.chat.completions.create({model, messages});
let refused = null;
try {
  await client.chat.completions.create({model: "gpt-4o", messages: [{role: "user", content: "Write a poem."}]});
} catch (error) { refused = [error.status, error.code]; }
const models = [];
for await (const each of client.models.list()) models.push(each.id);
const answer = whole.choices[0].message.content, listed = models.includes(model);
console.log(JSON.stringify({content: answer, parts, refused, listed}));
"""


def _node(script: str, url: str, environment: Mapping[str, str] | None = None) -> object:
    arguments = ("--input-type=module", "--eval", script, url)
    printed = run("node", *arguments, folder=node_packages(), timeout_seconds=60, environment=environment)
    answer: object = json.loads(printed)
    return answer


def test_deepl_node(url: str) -> None:
    answer = _node(DEEPL_NODE, url)
    assert isinstance(answer, dict)
    assert answer["one"] == "Guten Morgen."
    assert (answer["detected"], answer["billed"]) == ("en", 13)
    assert answer["many"] == ["Guten Morgen.", "..."]
    assert set(answer["targets"]) == {"de", "en-GB", "en-US", "es", "fr"}
    assert answer["count"] >= 26
    assert "Halt" in answer["kept"]
    assert answer["entries"] == {"station": "Halt"}
    assert "not supported" in answer["refused"]
    assert "does not have style_rules" in answer["missing"]
    assert answer["marked"].count("<i>") == 1


def test_translate(url: str) -> None:
    assert _node(TRANSLATE, url) == "Guten Morgen."


def test_libretranslate(url: str) -> None:
    answer = _node(LIBRETRANSLATE, url)
    assert isinstance(answer, dict)
    assert "Guten Morgen." in json.dumps(answer["named"])
    assert answer["detected"]


def test_google_translate_api_x(url: str) -> None:
    answer = _node(GOOGLE_API_X, url)
    assert isinstance(answer, dict)
    assert (answer["one"], answer["single"]) == ("Guten Morgen.", "Guten Morgen.")
    assert answer["many"] == ["Guten Morgen.", "Vielen Dank."]
    assert answer["detected"] == ["en", "en"]


def test_google_translate_api(tmp_path: Path) -> None:
    """The package has https in its address: the server has a certificate that node trusts."""
    certificate, key = str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")
    run(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"),
        *("-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key),
    )
    for served in started("--tls-certificate", certificate, "--tls-key", key, "--threads", "1"):
        answer = _node(GOOGLE_API, served.url, {"NODE_EXTRA_CA_CERTS": certificate})
    assert answer == ["Guten Morgen.", "en"]


def test_openai(url: str) -> None:
    answer = _node(OPENAI, url)
    assert isinstance(answer, dict)
    assert answer["content"] == "".join(answer["parts"])
    assert len(list(filter(None, answer["parts"]))) > 2
    assert (answer["refused"], answer["listed"]) == ([400, "invalid_request"], True)
