"""The DeepL-compatible protocol by hand, with engines that answer with their source; see also its own client."""

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.interface.errors import EngineFailed, QueueFull
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator

ENGLISH = "Where is the railway station?"
ENTRIES = "tea\tTee\nwater\tWasser"


@pytest.fixture
def echoes(echo_for: EchoFor) -> list[EchoGenerator]:
    return [echo_for("en", "de"), echo_for("de", "en"), echo_for("en", "pt")]


@pytest.fixture
def client(echoes: list[EchoGenerator]) -> Iterator[TestClient]:
    settings = Settings(max_texts=50, max_text_characters=1000, default_beam_size=2)
    with TestClient(create_app(settings, echoes)) as client:
        yield client


def test_json_forms_and_queries_are_the_same(client: TestClient) -> None:
    fields = {"text": ["Tea.", "Water."], "target_lang": "de", "source_lang": "EN"}
    expected = [
        {"detected_source_language": "EN", "text": text, "billed_characters": len(text)} for text in ("Tea.", "Water.")
    ]
    for answer in (
        client.post("/v2/translate", json=fields),
        client.post("/v2/translate", data=fields),
        client.post("/v2/translate", params=fields),
        client.get("/v2/translate", params=fields),
        client.request("GET", "/v2/translate", data=fields),
    ):
        assert (answer.status_code, answer.json()) == (200, {"translations": expected}), answer.text
        assert answer.headers["X-Trace-ID"] == answer.headers["X-Request-ID"]
    one = client.post("/v2/translate", json={"text": "Tea.", "target_lang": "DE"})
    assert [each["text"] for each in one.json()["translations"]] == ["Tea."]


@pytest.mark.parametrize(
    ("model_type", "beam_size"),
    [(None, 2), ("latency_optimized", 1), ("quality_optimized", 4), ("prefer_quality_optimized", 4)],
)
def test_the_model_type_is_greedy_or_beams(
    client: TestClient, echoes: list[EchoGenerator], model_type: str | None, beam_size: int
) -> None:
    fields = {"text": ["Tea."], "target_lang": "DE", "source_lang": "EN", "model_type": model_type}
    [answer] = client.post("/v2/translate", json=fields).json()["translations"]
    assert ("model_type_used" in answer) == (model_type is not None)
    [[request]] = echoes[0].batches
    assert request.params.beam_size == beam_size


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Parameter 'text' not specified."),
        ({"text": "a", "target_lang": "xx"}, "Value for 'target_lang' not supported."),
        ({"text": "a", "target_lang": "en-gb", "formality": "less"}, "Target language does not support formality"),
        ({"text": ["a"] * 51, "target_lang": "de"}, "a request must have at most 50 texts. Given: 51"),
    ],
)
def test_errors_have_the_wording_of_the_protocol(client: TestClient, fields: dict[str, object], message: str) -> None:
    answer = client.post("/v2/translate", json=fields)
    assert answer.status_code == 400
    assert set(answer.json()) == {"message"}
    assert answer.json()["message"].startswith(message)


def test_a_pair_without_a_model_is_an_error_about_the_target(echoes: list[EchoGenerator]) -> None:
    with TestClient(create_app(Settings(pivot=""), echoes)) as client:
        answer = client.post("/v2/translate", json={"text": "a", "source_lang": "DE", "target_lang": "PT-BR"})
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("Value for 'target_lang' not supported with this source_lang: no model")


@pytest.mark.parametrize("target", ["EN", "EN-GB", "EN-US"])
def test_a_text_in_the_target_language_stays_as_it_is(
    client: TestClient, echoes: list[EchoGenerator], target: str
) -> None:
    fields = {"text": "Where is the railway station?", "source_lang": "EN", "target_lang": target}
    [translation] = client.post("/v2/translate", json=fields).json()["translations"]
    assert (translation["text"], translation["detected_source_language"]) == (fields["text"], "EN")
    assert not any(echo.batches for echo in echoes)


@pytest.mark.parametrize(
    "accepted",
    [
        {"preserve_formatting": "1", "context": "at sea"},
        {"formality": "more", "target_lang": "PT-BR", "source_lang": "EN"},
        {"nobody_knows_this": {"a": 1}, "style_id": None, "custom_instructions": []},
    ],
)
def test_what_is_accepted_changes_nothing(client: TestClient, accepted: dict[str, object]) -> None:
    answer = client.post("/v2/translate", json={"text": [ENGLISH], "target_lang": "DE"} | accepted)
    assert answer.status_code == 200, answer.text
    assert answer.json()["translations"][0]["text"] == ENGLISH


@pytest.mark.parametrize(
    ("accepted", "told"),
    [
        ({}, ["Where is", "the dog? Tea.", "", "Water."]),
        ({"split_sentences": "1"}, ["Where is", "the dog? Tea.", "", "Water."]),
        ({"split_sentences": "nonewlines"}, ["Where is the dog? Tea.", "", "Water."]),
        ({"split_sentences": "0"}, ["Where is the dog? Tea.", "", "Water."]),
        ({"split_sentences": "nonewlines", "tag_handling": "html"}, ["Where is the dog? Tea. Water."]),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_sentences_may_go_on_in_the_next_line_where_that_is_asked(
    client: TestClient, accepted: dict[str, str], told: list[str], line_end: str
) -> None:
    text = line_end.join(("Where is", "the dog? Tea.", "", "Water."))
    fields = {"text": [text], "target_lang": "DE", "source_lang": "EN"}
    [answer] = client.post("/v2/translate", json=fields | accepted).json()["translations"]
    assert answer["text"].splitlines() == told
    assert answer["billed_characters"] == len(text)


def test_failures_have_the_protocols_shape_too(client: TestClient, echoes: list[EchoGenerator]) -> None:
    fields = {"text": ["Tea."], "target_lang": "DE", "source_lang": "EN"}
    echoes[0].error = QueueFull("full", 2.1)
    full = client.post("/v2/translate", json=fields)
    assert (full.status_code, full.headers["Retry-After"], full.json()) == (429, "3", {"message": "full"})
    for error in (EngineFailed("a step failed"), RuntimeError("/somewhere/private")):
        echoes[0].error = error
        failed = client.post("/v2/translate", json=fields)
        assert (failed.status_code, list(failed.json())) == (500, ["message"])
        assert "private" not in failed.text
    assert client.get("/v2/nothing").json()["message"]
    assert client.get("/v3/nothing").json()["message"]


def _create(client: TestClient, **changed: object) -> dict[str, object]:
    fields = {"name": "Drinks", "source_lang": "en", "target_lang": "DE", "entries": ENTRIES, "entries_format": "tsv"}
    answer: dict[str, object] = client.post("/v2/glossaries", json=fields | changed).json()
    return answer


def test_glossaries_are_named_in_a_list_or_with_commas(client: TestClient, echoes: list[EchoGenerator]) -> None:
    first, second = (str(_create(client, entries=entries)["glossary_id"]) for entries in ("tea\tTee", "cup\tTasse"))
    fields = {"text": "Tea in a cup.", "target_lang": "DE", "source_lang": "EN"}
    named: list[dict[str, object]] = [
        {"json": fields | {"glossary_ids": [first, second]}},
        {"json": fields | {"glossary_ids": f"{first},{second}"}},
        {"data": fields | {"glossary_ids": f"{first}, {second}"}},
        {"data": fields | {"glossary_ids": [first, second]}},
    ]
    for sent in named:
        answer = client.post("/v2/translate", headers={"Cache-Control": "no-cache"}, **sent)  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
    assert [len(batch[0].params.required_terms) for batch in echoes[0].batches] == [2] * len(named)
    both = client.post("/v2/translate", json=fields | {"glossary_id": first, "glossary_ids": [second]})
    assert both.status_code == 400
    assert "cannot be used together" in both.json()["message"]
    many = client.post("/v2/translate", json=fields | {"glossary_ids": ",".join([first] * 6)})
    assert "at most 5 entries. Given: 6" in many.json()["message"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "Parameter 'name' not specified."),
        ({"entries": "tea\tTee\ntea\tThee"}, "entry 2 of the glossary repeats a term: 'tea'"),
        ({"entries_format": "xls"}, "Value for 'entries_format' not supported."),
        ({"target_lang": "fr"}, "Unsupported glossary source language and target language."),
    ],
)
def test_glossaries_that_make_no_sense_are_refused(
    client: TestClient, changed: dict[str, object], message: str
) -> None:
    assert _create(client, **changed) == {"message": message}


def test_characters_that_are_none_do_no_harm(client: TestClient) -> None:
    for path, body in (
        ("/v2/glossaries", '{"name":"\\ud800","source_lang":"en","target_lang":"de","entries":"a\\t\\ud800"}'),
        ("/v2/translate", '{"text":"\\ud800","target_lang":"de"}'),
        ("/v2/translate", '{"text":"a","target_lang":"de","source_lang":"en","glossary_id":"\\ud800"}'),
        ("/v1/translate", '{"text":"a","target":"de","source":"en","glossary_id":"\\ud800"}'),
        ("/v1/translate", '{"text":"a","target":"de","source":"en","glossary":{"a":"\\ud800"}}'),
    ):
        answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (200, 201, 400, 404, 422), answer.text


@pytest.mark.parametrize("splitting", ["0", "nonewlines"])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("3. Wash the cup\n4. Dry the cup", 2),
        ("What we need:\n- tea\n- milk\nfrom the farm", 3),
        ("(a) a pot\r\n(b) a lid", 2),
        ("* one\n  * two", 2),
        ("We finished\n3. and slept well.", 1),
        ("The pot - an old\none - broke.", 1),
    ],
)
def test_items_of_a_list_stay_on_lines_of_their_own(
    compatible: TestClient, splitting: str, text: str, lines: int
) -> None:
    fields = {"text": [text], "target_lang": "DE", "source_lang": "EN", "split_sentences": splitting}
    [answer] = compatible.post("/v2/translate", json=fields).json()["translations"]
    assert len(answer["text"].splitlines()) == lines
    assert answer["text"].split() == text.split()


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"tag_handling": "html"}, "v2"),
        ({"tag_handling": "xml", "tag_handling_version": "v1"}, "v1"),
        ({"tag_handling": "html", "tag_handling_version": "v2"}, "v2"),
        ({"tag_handling_version": "v1"}, None),
        ({}, None),
    ],
)
def test_the_version_of_tag_handling_is_returned_with_tags(
    compatible: TestClient, fields: dict[str, str], version: str | None
) -> None:
    fields = fields | {"target_lang": "DE", "source_lang": "EN"}
    for answer in (
        compatible.post("/v2/translate", json={"text": ["<i>Tea</i>.", "Cup."]} | fields),
        compatible.post("/v2/translate", data={"text": "<i>Tea</i>."} | fields),
    ):
        assert {each.get("tag_handling_version") for each in answer.json()["translations"]} == {version}


@pytest.mark.parametrize("text", ["<p>Tea</b>", "Tea &", "<a>\n<b x=1>Tea</b></a>", "<p>Tea"])
def test_xml_that_is_not_well_formed_names_the_place_and_the_way_out(compatible: TestClient, text: str) -> None:
    fields = {"text": [text], "target_lang": "DE", "source_lang": "EN"}
    answer = compatible.post("/v2/translate", json=fields | {"tag_handling": "xml"})
    assert answer.status_code == 400
    message = answer.json()["message"]
    assert message.startswith("Tag handling parsing failed, please check input")
    assert re.search(r"in line \d", message)
    assert "tag_handling=html" in message
    assert compatible.post("/v2/translate", json=fields | {"tag_handling": "html"}).status_code == 200
