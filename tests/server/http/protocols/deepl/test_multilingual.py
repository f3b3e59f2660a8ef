"""Multilingual glossaries of the DeepL-compatible protocol."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator

PATH = "/v3/glossaries"


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), [echo])) as client:
        yield client


def _dictionary(entries: str = "Tea\tTee", **changes: str) -> dict[str, str]:
    return {"source_lang": "EN", "target_lang": "DE", "entries": entries, "entries_format": "tsv"} | changes


def _created(client: TestClient, *dictionaries: dict[str, str]) -> str:
    answer = client.post(PATH, json={"name": "mine", "dictionaries": list(dictionaries or [_dictionary()])})
    assert answer.status_code == 201, answer.text
    glossary_id: str = answer.json()["glossary_id"]
    return glossary_id


def _entries(client: TestClient, glossary_id: str) -> str:
    answer = client.get(f"{PATH}/{glossary_id}/entries", params={"source_lang": "en", "target_lang": "DE"})
    assert answer.status_code == 200, answer.text
    [dictionary] = answer.json()["dictionaries"]
    assert (dictionary["source_lang"], dictionary["target_lang"]) == ("en", "de")
    assert dictionary["entries_format"] == "tsv"
    entries: str = dictionary["entries"]
    return entries


def test_a_glossary_is_created_read_and_listed(client: TestClient) -> None:
    glossary_id = _created(client, _dictionary('tea,"a ""tea"""\n', entries_format="csv"))
    found = client.get(f"{PATH}/{glossary_id}").json()
    assert found["name"] == "mine"
    assert found["dictionaries"] == [{"source_lang": "en", "target_lang": "de", "entry_count": 1}]
    assert found["creation_time"].startswith("20")
    assert _entries(client, glossary_id) == 'tea\ta "tea"'
    assert found in client.get(PATH).json()["glossaries"]
    assert [each["glossary_id"] for each in client.get("/v2/glossaries").json()["glossaries"]] == [glossary_id]


def test_a_dictionary_is_merged_replaced_and_the_glossary_renamed(client: TestClient) -> None:
    glossary_id = _created(client)
    changed = client.patch(
        f"{PATH}/{glossary_id}", json={"name": "ours", "dictionaries": [_dictionary("Tea\tder Tee\nCup\tTasse")]}
    )
    assert changed.status_code == 200, changed.text
    assert (changed.json()["name"], changed.json()["dictionaries"][0]["entry_count"]) == ("ours", 2)
    assert _entries(client, glossary_id) == "Tea\tder Tee\nCup\tTasse"
    replaced = client.put(f"{PATH}/{glossary_id}/dictionaries", json=_dictionary("Pot\tKanne"))
    assert replaced.json() == {"source_lang": "en", "target_lang": "de", "entry_count": 1}
    assert _entries(client, glossary_id) == "Pot\tKanne"
    assert client.get(f"{PATH}/{glossary_id}").json()["name"] == "ours"


@pytest.mark.parametrize("name", ["dictionaries[{}].{}", "dictionaries[{}][{}]"])
def test_forms_are_read_as_json(client: TestClient, name: str) -> None:
    def form(*dictionaries: dict[str, str]) -> dict[str, str]:
        return {
            name.format(index, field): value
            for index, dictionary in enumerate(dictionaries, start=1)
            for field, value in dictionary.items()
        }

    created = client.post(PATH, data=form(_dictionary()) | {"name": "mine"})
    assert created.status_code == 201, created.text
    path = f"{PATH}/{created.json()['glossary_id']}"
    client.patch(path, data=form(_dictionary("Cup\tTasse"))).raise_for_status()
    assert client.patch(path, data={"name": "ours"}).json()["name"] == "ours"
    assert _entries(client, created.json()["glossary_id"]) == "Tea\tTee\nCup\tTasse"
    client.put(f"{path}/dictionaries", data=_dictionary("Pot\tKanne")).raise_for_status()
    assert _entries(client, created.json()["glossary_id"]) == "Pot\tKanne"


def test_a_glossary_of_the_older_routes_is_one_with_a_single_dictionary(client: TestClient) -> None:
    fields = {"name": "old", "source_lang": "en", "target_lang": "de", "entries": "Tea\tTee"}
    glossary_id = client.post("/v2/glossaries", json=fields).json()["glossary_id"]
    assert [each["glossary_id"] for each in client.get(PATH).json()["glossaries"]] == [glossary_id]
    assert client.patch(f"{PATH}/{glossary_id}", json={"name": "new"}).json()["name"] == "new"
    client.put(f"{PATH}/{glossary_id}/dictionaries", json=_dictionary("Pot\tKanne"))
    assert _entries(client, glossary_id) == "Pot\tKanne"
    assert client.delete(f"{PATH}/{glossary_id}").status_code == 204
    assert client.get(PATH).json()["glossaries"] == []


def test_a_deleted_glossary_and_dictionary_are_gone(client: TestClient) -> None:
    glossary_id = _created(client)
    pair = {"source_lang": "en", "target_lang": "de"}
    last = client.delete(f"{PATH}/{glossary_id}/dictionaries", params=pair)
    assert (last.status_code, set(last.json())) == (400, {"message"})
    other = client.delete(f"{PATH}/{glossary_id}/dictionaries", params=pair | {"target_lang": "fr"})
    assert other.status_code == 404
    assert client.delete(f"{PATH}/{glossary_id}").status_code == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("PATCH", "")):
        answer = client.request(method, f"{PATH}/{glossary_id}{path}", json={"name": "a"})
        assert (answer.status_code, answer.json()) == (404, {"message": "Glossary not found"})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"dictionaries": []}, "Parameter 'name' not specified."),
        ({"name": "a", "dictionaries": "x"}, "`dictionaries` must be a list of 1 to 100"),
        ({"name": "a", "dictionaries": [_dictionary(target_lang="xx")]}, "Unsupported glossary source language"),
        ({"name": "a", "dictionaries": [_dictionary("only")]}, "entry 1 of the glossary must be a term"),
    ],
)
def test_an_invalid_glossary_is_rejected_in_the_words_of_the_protocol(
    client: TestClient, body: dict[str, object], message: str
) -> None:
    answer = client.post(PATH, json=body)
    assert (answer.status_code, set(answer.json())) == (400, {"message"})
    assert answer.json()["message"].startswith(message)
    assert client.get(PATH).json()["glossaries"] == []


@pytest.mark.parametrize(
    ("fields", "ignored"),
    [
        ({"custom_instructions": ["be brief"], "style_id": "x"}, "custom_instructions, style_id"),
        ({"context": "at sea"}, "context"),
        ({'new"\r\nSet-Cookie: a': 1}, "new???Set-Cookie??a"),
        ({"nobody_knows_this": True}, "nobody_knows_this"),
    ],
)
def test_fields_without_effect_are_named_in_a_header(
    client: TestClient, fields: dict[str, object], ignored: str
) -> None:
    body = {"text": ["Tea."], "target_lang": "DE", "source_lang": "EN"}
    answer = client.post("/v2/translate", json=body | fields)
    assert answer.status_code == 200, answer.text
    assert answer.headers["warning"] == f'299 kvasir "ignored fields: {ignored}"'
    assert "warning" not in client.post("/v2/translate", json=body | {"formality": "default"}).headers


@pytest.fixture
def both_ways(echo_for: EchoFor) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), [echo_for("en", "de"), echo_for("de", "en")])) as client:
        yield client


def test_the_older_routes_know_glossaries_with_one_dictionary(both_ways: TestClient) -> None:
    glossary_id = _created(both_ways)
    assert both_ways.get(f"/v2/glossaries/{glossary_id}").json()["entry_count"] == 1
    other = _dictionary("Tee\ttea") | {"source_lang": "de", "target_lang": "en"}
    assert both_ways.put(f"{PATH}/{glossary_id}/dictionaries", json=other).status_code == 200
    assert both_ways.get("/v2/glossaries").json()["glossaries"] == []
    assert both_ways.get(f"/v2/glossaries/{glossary_id}").status_code == 404


def _counts(client: TestClient, glossary_id: str) -> dict[str, int]:
    dictionaries = client.get(f"{PATH}/{glossary_id}").json()["dictionaries"]
    return {f"{each['source_lang']}-{each['target_lang']}": each["entry_count"] for each in dictionaries}


def test_entries_with_languages_go_into_the_dictionary_of_these(both_ways: TestClient) -> None:
    entries = "lid,Deckel,EN,DE\nDeckel,lid,DE,EN\nPfanne,pan,DE,EN\n"
    glossary_id = _created(both_ways, _dictionary(entries, entries_format="csv"))
    assert _counts(both_ways, glossary_id) == {"en-de": 1, "de-en": 2}
    added = _dictionary("pan,Pfanne\nTopf,pot,DE,EN\n", entries_format="csv")
    assert both_ways.patch(f"{PATH}/{glossary_id}", json={"dictionaries": [added]}).status_code == 200
    assert _counts(both_ways, glossary_id) == {"en-de": 2, "de-en": 3}
    assert _entries(both_ways, glossary_id) == "lid\tDeckel\npan\tPfanne"


def test_a_dictionary_is_not_replaced_by_a_table_that_has_another_pair_too(both_ways: TestClient) -> None:
    glossary_id = _created(both_ways)
    table = _dictionary("lid,Deckel,EN,DE\nDeckel,lid,DE,EN\n", entries_format="csv")
    answer = both_ways.put(f"{PATH}/{glossary_id}/dictionaries", json=table)
    assert (answer.status_code, "entry 2 of the glossary is from de to en" in answer.text) == (400, True)
    assert _entries(both_ways, glossary_id) == "Tea\tTee"
