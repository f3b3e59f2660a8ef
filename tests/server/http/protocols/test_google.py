"""The Google-compatible protocol, with engines that answer with their source."""

import json
import re

import pytest
from starlette.testclient import TestClient

from tests.fakes.echo import EchoGenerator

V2 = "/language/translate/v2"
BATCH = "/_/TranslateWebserverUi/data/batchexecute"
ENGLISH, GERMAN = "Where is the railway station?", "Wo ist der Bahnhof? Er ist 300 Meter von hier."


def _translations(data: dict[str, dict[str, list[dict[str, str]]]]) -> list[dict[str, str]]:
    return data["data"]["translations"]


@pytest.mark.parametrize("path", [V2, f"{V2}/", "/google/language/translate/v2"])
def test_texts_in_json_in_a_form_and_in_the_query(compatible: TestClient, path: str) -> None:
    fields = {"q": [ENGLISH, "Tea."], "target": "de", "source": "en"}
    nulls: dict[str, object] = {"format": None, "model": None, "cid": []}
    answers = [
        compatible.post(path, json=fields | nulls),
        compatible.post(path, params={"target": "de", "source": "en", "key": "x"}, data={"q": fields["q"]}),
        compatible.post(path, params={"target": "de", "source": "en", "prettyPrint": "false"}, json={"q": fields["q"]}),
        compatible.post(path, data=fields, headers={"X-HTTP-Method-Override": "GET"}),
        compatible.get(path, params={**fields, "key": "x"}),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert _translations(answer.json()) == [{"translatedText": ENGLISH}, {"translatedText": "Tea."}]


def test_a_missing_source_is_detected_for_each_text(compatible: TestClient) -> None:
    answer = compatible.post(V2, json={"q": [ENGLISH, GERMAN], "target": "de", "source": None})
    assert [each["detectedSourceLanguage"] for each in _translations(answer.json())] == ["en", "de"]


def test_texts_are_html_unless_they_are_declared_as_text(compatible: TestClient) -> None:
    text = "Tea\nand water."
    fields = {"q": text, "target": "de", "source": "en"}
    assert _translations(compatible.post(V2, json=fields | {"format": "text"}).json())[0]["translatedText"] == text
    markup = "<p>Tea &amp; <b>water</b>.</p>"
    assert _translations(compatible.post(V2, json=fields | {"q": markup}).json())[0]["translatedText"] == markup


def test_each_text_has_one_detection(compatible: TestClient) -> None:
    answer = compatible.post(f"{V2}/detect", json={"q": [GERMAN, "5"]}).json()
    [[german], [nothing]] = answer["data"]["detections"]
    assert german["language"] == "de"
    assert 0.5 < german["confidence"] <= 1
    assert nothing == {"language": "und", "confidence": 0, "isReliable": False}


def test_languages_have_names_in_the_language_of_the_caller(compatible: TestClient) -> None:
    plain = compatible.get(f"{V2}/languages").json()["data"]["languages"]
    assert plain == [{"language": "de"}, {"language": "en"}, {"language": "zh-TW"}]
    for locale, name in {"en": "German", "fr": "allemand", "xx-yy": "German", "../": "German"}.items():
        named = compatible.get(f"{V2}/languages", params={"target": locale}).json()["data"]["languages"]
        assert named[0] == {"language": "de", "name": name}, locale


@pytest.mark.parametrize(
    "fields",
    [
        {"target": "de"},
        {"q": "Tea.", "target": "ja"},
        {"q": [5], "target": "de"},
    ],
)
def test_errors_have_googles_form(compatible: TestClient, fields: dict[str, object]) -> None:
    answer = compatible.post(V2, json=fields)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert error["errors"] == [{"message": error["message"], "domain": "global", "reason": "invalid"}]


@pytest.mark.parametrize("path", ["/translate_a/single", "/google/translate_a/single"])
def test_the_web_page_has_an_array(compatible: TestClient, path: str) -> None:
    query = {"client": "gtx", "sl": "auto", "tl": "de", "dt": ["t", "at", "md"], "q": ENGLISH}
    answer = compatible.get(path, params=query).json()
    confidence = answer[6]
    assert 0.5 < confidence <= 1
    languages = [["en"], None, [confidence], ["en"]]
    assert answer == [
        [[ENGLISH, ENGLISH, None, None, 10]], None, "en", None, None, None, confidence, [], languages,
    ]  # fmt: skip
    form = compatible.post(path, params={"client": "gtx", "sl": "en", "tl": "zh-TW"}, data={"q": ENGLISH}).json()
    assert (form[0][0][0], form[2]) == (ENGLISH, "en")


def test_each_line_is_a_piece_with_its_break(compatible: TestClient) -> None:
    query = {"client": "gtx", "sl": "en", "tl": "de", "q": "Tea.\n\nWater.\nGood morning."}
    pieces = compatible.get("/translate_a/single", params=query).json()[0]
    assert [piece[0] for piece in pieces] == ["Tea.\n", "\n", "Water.\n", "Good morning."]


def test_the_web_page_has_an_object_on_request(compatible: TestClient) -> None:
    query = {"client": "gtx", "sl": "en", "tl": "de", "dj": "1", "q": "Tea."}
    assert compatible.get("/translate_a/single", params=query).json() == {
        "sentences": [{"trans": "Tea.", "orig": "Tea.", "backend": 10}],
        "src": "en",
        "confidence": 1,
        "spell": {},
        "ld_result": {"srclangs": ["en"], "srclangs_confidences": [1], "extended_srclangs": ["en"]},
    }


def test_several_texts_are_a_list(compatible: TestClient, engines: list[EchoGenerator]) -> None:
    engines[0].batches.clear()
    query = {"client": "at", "sl": "en", "tl": "de"}
    answer = compatible.post("/translate_a/t", params=query, data={"q": ["Good water.", "Tea, please."]})
    assert answer.json() == ["Good water.", "Tea, please."]
    assert [len(batch) for batch in engines[0].batches] == [2]
    detected = compatible.post("/translate_a/t", params=query | {"sl": "auto"}, data={"q": [ENGLISH, GERMAN]})
    assert detected.json() == [[ENGLISH, "en"], [GERMAN, "de"]]


def test_the_page_for_telephones_has_the_translation(compatible: TestClient) -> None:
    answer = compatible.get("/m", params={"sl": "auto", "tl": "de", "q": "Tea & <b>water</b>."})
    assert '<div class="result-container">Tea &amp; &lt;b&gt;water&lt;/b&gt;.</div>' in answer.text
    assert compatible.get("/m", params={"sl": "en", "tl": "de"}).json()["error"]["message"] == "`q` is missing"


def test_the_start_page_has_languages_and_a_session(compatible: TestClient) -> None:
    page = compatible.get("/google").text
    assert re.findall('data-language-code="(.*?)"', page) == ["de", "en", "zh-TW"]
    assert json.loads(re.findall("window.WIZ_global_data = (.*?);</script>", page)[0]).keys() == {"cfb2h", "FdrFJe"}


def _calls(*calls: tuple[str, str, str]) -> dict[str, str]:
    parts = [
        ["MkEWBc", json.dumps([[text, source, target, True], [1]]), None, str(index)]
        for index, (text, source, target) in enumerate(calls)
    ]
    return {"f.req": json.dumps([parts])}


@pytest.mark.parametrize("path", [BATCH, f"/google{BATCH}"])
def test_calls_of_the_page_are_answered_in_their_order(compatible: TestClient, path: str) -> None:
    form = _calls((ENGLISH, "auto", "de"), ("Tea.", "en", "zh-TW"), (GERMAN, "auto", "de"))
    whole = compatible.post(path, data=form)
    lines = compatible.post(path, params={"rt": "c", "rpcids": "MkEWBc"}, data=form)
    assert whole.text.startswith(")]}'\n\n")
    parts = json.loads(whole.text[6:])
    framed = lines.text[6:].splitlines()
    assert [json.loads(line)[0] for line in framed[1::2]] == parts
    assert [len(line) + 2 for line in framed[1::2]] == list(map(int, framed[::2]))
    assert [(part[0], part[1], part[6]) for part in parts] == [("wrb.fr", "MkEWBc", str(index)) for index in range(3)]
    answers = [json.loads(part[2]) for part in parts]
    assert [answer[1][0][0][5][0][0] for answer in answers] == [ENGLISH, "Tea.", GERMAN]
    assert [(answer[1][1], answer[1][3], answer[2]) for answer in answers] == [
        ("de", "auto", "en"),
        ("zh-TW", "en", "en"),
        ("de", "auto", "de"),
    ]


@pytest.mark.parametrize(
    "request_field",
    ["", "[", "[]", "[[]]", '[[["x", "[]", null, "0"]]]', '[[["MkEWBc", "[]", null, "0"]]]', "[" * 5000, "5"],
)
def test_damaged_calls_of_the_page_are_rejected(compatible: TestClient, request_field: str) -> None:
    answer = compatible.post(BATCH, data={"f.req": request_field})
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
