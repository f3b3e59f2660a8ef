"""`GET /v1/languages`."""

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from server.text.language_tags import display_name, own_name
from tests.fakes.echo import EchoFor


def test_every_language_has_its_names_and_directions(echo_for: EchoFor) -> None:
    with TestClient(create_app(Settings(), [echo_for("en", "de"), echo_for("cv", "en")])) as client:
        answer = client.get("/v1/languages", params={"in": "fr"}).json()
        english = client.get("/v1/languages").json()
    expected = [
        ("cv", "tchouvache", "чӑваш", True, False),
        ("de", "allemand", "Deutsch", False, True),
        ("en", "anglais", "English", True, True),
    ]
    keys = ("language", "name", "own_name", "source", "target")
    assert [tuple(each[key] for key in keys) for each in answer["languages"]] == expected
    assert [each["name"] for each in english["languages"]] == ["Chuvash", "German", "English"]


@pytest.mark.parametrize("language", ["", "x", "zz", "../en", "de_XX_%", "en-Latn-US-x-y", "\N{SNOWMAN}"])
def test_an_unknown_language_of_names_is_english(echo_for: EchoFor, language: str) -> None:
    with TestClient(create_app(Settings(), [echo_for("en", "de")])) as client:
        answer = client.get("/v1/languages", params={"in": language})
    assert answer.status_code == 200
    assert answer.json()["languages"][1]["name"] in ("English", "Englisch")


@pytest.mark.parametrize(
    ("tag", "in_language", "name"),
    [
        ("pt-BR", "de", "Portugiesisch"),
        ("pt-BR", "fr-CA", "portugais brésilien"),
        ("zh_hant", "en", "Traditional Chinese"),
        ("cv", "xx", "Chuvash"),
        ("ZZX", "de", "ZZX"),
    ],
)
def test_names_fall_back_to_the_primary_language_then_english_then_the_tag(
    tag: str, in_language: str, name: str
) -> None:
    assert display_name(tag, in_language) == name


def test_a_tag_without_a_language_has_no_own_name() -> None:
    assert own_name("zzx") is None
    assert own_name("de-AT") == "Österreichisches Deutsch"
