"""The Apertium-compatible protocol, with engines that answer with their source."""

import json

import pytest
from starlette.testclient import TestClient

ENGLISH, GERMAN = "Where is the railway station?", "Wo ist der Bahnhof? Er ist 300 Meter von hier."
ANSWER = {"responseData": {"translatedText": ENGLISH}, "responseDetails": None, "responseStatus": 200}


@pytest.mark.parametrize("path", ["/translate", "/apertium/translate"])
@pytest.mark.parametrize("pair", ["eng|deu", "en|de", "eng|zho_Hant", "en|zh-TW", "en-GB|de_AT"])
def test_a_text_in_the_query_or_in_a_form(compatible: TestClient, path: str, pair: str) -> None:
    fields = {"langpair": pair, "q": ENGLISH, "markUnknown": "no", "format": "txt"}
    for answer in (
        compatible.get(path, params=fields),
        compatible.get(f"{path}?langpair={pair}&q={ENGLISH.replace(' ', '%20').removesuffix('?')}%3F"),
        compatible.post(path, data=fields),
    ):
        assert (answer.status_code, answer.json()) == (200, ANSWER), answer.text


def test_texts_are_html_unless_they_are_declared_as_text(compatible: TestClient) -> None:
    markup = "<p>Tea &amp; <b>water</b>.</p>"
    answer = compatible.post("/translate", data={"langpair": "en|de", "q": markup}).json()
    assert answer["responseData"]["translatedText"] == markup


@pytest.mark.parametrize("path", ["/listPairs", "/list", "/apertium/listPairs"])
def test_pairs_have_codes_of_both_lengths_and_long_ones_first(compatible: TestClient, path: str) -> None:
    pairs = [(each["sourceLanguage"], each["targetLanguage"]) for each in compatible.get(path).json()["responseData"]]
    assert pairs[:2] == [("eng", "deu"), ("deu", "eng")]
    assert {("en", "de"), ("eng", "zho_Hant"), ("en", "zh-Hant")} <= set(pairs)
    for source, target in pairs:
        fields = {"langpair": f"{source}|{target}", "q": "Tea.", "format": "txt"}
        assert compatible.get("/translate", params=fields).status_code == 200


def test_the_language_of_a_text(compatible: TestClient) -> None:
    answer = compatible.get("/identifyLang", params={"q": GERMAN}).json()
    assert max(answer, key=lambda code: answer[code]) == "deu"
    assert set(answer) == {"deu", "eng"}


def test_an_answer_may_be_the_call_of_a_function(compatible: TestClient) -> None:
    fields = {"langpair": "en|de", "q": ENGLISH, "format": "txt", "callback": "show"}
    answer = compatible.get("/translate", params=fields)
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert json.loads(answer.text.removeprefix("/**/show(").removesuffix(")")) == ANSWER
    assert compatible.get("/translate", params=fields | {"callback": "alert(1)//"}).status_code == 400


@pytest.mark.parametrize(
    "fields",
    [
        {"langpair": "eng|jpn", "q": "Tea."},
        {"langpair": "eng", "q": "Tea."},
        {"langpair": "eng|deu", "q": "Tea.", "format": "odt"},
    ],
)
def test_errors_have_apertiums_form(compatible: TestClient, fields: dict[str, str]) -> None:
    answer = compatible.get("/translate", params=fields)
    body = answer.json()
    assert (answer.status_code, body["status"], body["code"], body["message"]) == (400, "error", 400, "Bad Request")
    assert body["responseDetails"] == body["explanation"] != ""
