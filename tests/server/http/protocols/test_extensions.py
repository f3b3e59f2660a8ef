import pytest
from starlette.testclient import TestClient

from tests.fakes.echo import EchoGenerator

ENGLISH, GERMAN = "Where is the railway station?", "Wo ist der Bahnhof? Er ist 300 Meter von hier."
PLACEHOLDERS = "Tea for {0} and <b0></b0>, please."


def test_immersive_gets_each_paragraph_in_order(compatible: TestClient) -> None:
    fields = {"source_lang": "auto", "target_lang": "zh-TW", "text_list": [ENGLISH, "", PLACEHOLDERS]}
    answer = compatible.post("/imme", json=fields)
    assert answer.status_code == 200, answer.text
    translations = answer.json()["translations"]
    assert [each["text"] for each in translations] == [ENGLISH, "", PLACEHOLDERS]
    assert [each["detected_source_lang"] for each in translations] == ["en", "en", "en"]


def test_paragraphs_are_decoded_in_one_batch(compatible: TestClient, engines: list[EchoGenerator]) -> None:
    engines[0].batches.clear()
    fields = {"source_lang": "en", "target_lang": "de", "text_list": ["Tea.", "Water.", "Good morning."]}
    assert compatible.post("/imme", json=fields).status_code == 200
    assert [len(batch) for batch in engines[0].batches] == [3]


@pytest.mark.parametrize("source", ["auto", "en", None])
def test_no_paragraphs_have_no_translations(compatible: TestClient, source: str | None) -> None:
    immersive = compatible.post("/imme", json={"source_lang": source, "target_lang": "de", "text_list": []})
    kiss = compatible.post("/kiss", json={"from": source, "to": "de", "texts": []})
    assert (immersive.status_code, immersive.json()) == (kiss.status_code, kiss.json()) == (200, {"translations": []})


@pytest.mark.parametrize("source", ["auto", "de", "ja", None, ""])
def test_the_language_of_a_page_is_only_a_hint(compatible: TestClient, source: str | None) -> None:
    fields = {"source_lang": source, "target_lang": "de", "text_list": [ENGLISH, GERMAN]}
    translations = compatible.post("/imme", json=fields).json()["translations"]
    assert [each["detected_source_lang"] for each in translations] == ["en", "de"]


def test_kiss_sends_one_text_or_several(compatible: TestClient) -> None:
    headers = {"Authorization": "Bearer "}  # without a key
    one = compatible.post("/kiss", json={"text": ENGLISH, "from": "auto", "to": "de"}, headers=headers)
    assert one.json() == {"text": ENGLISH, "src": "en", "from": "en"}
    several = compatible.post("/kiss", json={"texts": [ENGLISH, GERMAN], "from": "auto", "to": "de"}, headers=headers)
    assert several.json() == {
        "translations": [
            {"text": ENGLISH, "src": "en", "from": "en"},
            {"text": GERMAN, "src": "de", "from": "de"},
        ]
    }
    named = compatible.post("/kiss", json={"text": ENGLISH, "from": "EN", "to": "de"})
    assert named.json()["src"] == "EN"


def test_selection_translator_names_languages_in_chinese(compatible: TestClient) -> None:
    text = "Tea.\nWater."
    fields = {"name": "Kvasir", "text": text, "destination": ["德语", "英语"], "source": "英语"}
    answer = compatible.post("/hcfy", json=fields).json()
    assert answer == {"text": text, "from": "英语", "to": "德语", "result": ["Tea.", "Water."]}


def test_a_selection_in_the_first_language_gets_the_second(compatible: TestClient) -> None:
    fields = {"name": "Kvasir", "text": GERMAN, "destination": ["德语", "英语"]}
    answer = compatible.post("/hcfy", json=fields).json()
    assert (answer["from"], answer["to"], answer["result"]) == ("德语", "英语", [GERMAN])
    other = compatible.post("/hcfy", json=fields | {"text": ENGLISH}).json()
    assert (other["from"], other["to"]) == ("英语", "德语")
    traditional = compatible.post("/hcfy", json=fields | {"text": ENGLISH, "destination": ["中文(繁体)"]}).json()
    assert traditional["to"] == "中文(繁体)"


@pytest.mark.parametrize(
    ("address", "fields"),
    [
        ("/imme", {"target_lang": "de", "text_list": "Tea."}),
        ("/imme", {"target_lang": "ja", "text_list": ["Tea."]}),
        ("/kiss", {"from": "en", "to": "de", "text": ["Tea."]}),
        ("/hcfy", {"text": "Tea.", "destination": ["火星语"]}),
    ],
)
def test_invalid_requests_get_an_error(compatible: TestClient, address: str, fields: dict[str, object]) -> None:
    answer = compatible.post(address, json=fields)
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
