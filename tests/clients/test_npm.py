"""The clients of npm, in Node."""

import json

from tests.clients.environments import node_packages, run

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
let refused = "";
try { await client.translateText("Tea.", null, "ja"); } catch (error) { refused = error.message; }
console.log(JSON.stringify({
  one: one.text, detected: one.detectedSourceLang, billed: one.billedCharacters, many: many.map(each => each.text),
  targets: targets.map(each => each.code), count: usage.character.count, kept: kept.text, entries, refused,
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


def _node(script: str, url: str) -> object:
    arguments = ("--input-type=module", "--eval", script, url)
    answer: object = json.loads(run("node", *arguments, folder=node_packages(), timeout_seconds=60))
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


def test_translate(url: str) -> None:
    assert _node(TRANSLATE, url) == "Guten Morgen."


def test_libretranslate(url: str) -> None:
    answer = _node(LIBRETRANSLATE, url)
    assert isinstance(answer, dict)
    assert "Guten Morgen." in json.dumps(answer["named"])
    assert answer["detected"]
