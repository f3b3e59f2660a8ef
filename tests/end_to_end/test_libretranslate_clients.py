"""Other people's LibreTranslate clients, unmodified, against a running server."""

from pathlib import Path

import pytest
from deep_translator import LibreTranslator
from libretranslatepy import LibreTranslateAPI

from tests.end_to_end.servers import Served

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_libretranslatepy(polyglot: Served) -> None:
    client = LibreTranslateAPI(polyglot.url + "/")
    assert client.translate("Good morning.", "en", "de") == "Guten Morgen."
    detected = client.detect("Wo ist der Bahnhof, bitte schön?")
    assert detected[0]["language"] == "de"
    assert detected[0]["confidence"] > 90
    assert {each["code"] for each in client.languages()} == {"de", "en", "es", "fr"}


def test_a_file(polyglot: Served, tmp_path: Path) -> None:
    source = tmp_path / "letter.html"
    source.write_text("<p>Good morning.</p>", encoding="utf-8")
    with polyglot.client() as client, source.open("rb") as content:
        fields = {"source": "en", "target": "de"}
        url = client.post("/translate_file", files={"file": content}, data=fields).json()["translatedFileUrl"]
        assert "<p>Guten Morgen.</p>" in client.get(url).text


def test_html_keeps_its_tags(polyglot: Served) -> None:
    fields = {"q": '<p class="a">Good <b>morning</b>.</p>', "source": "auto", "target": "de", "format": "html"}
    with polyglot.client() as client:
        answer = client.post("/translate", json=fields).json()
    assert answer["translatedText"] == '<p class="a">Guten <b>Morgen</b>.</p>'
    assert answer["detectedLanguage"]["language"] == "en"


def test_deep_translator(polyglot: Served) -> None:
    client = LibreTranslator(source="en", target="de", api_key="x", custom_url=polyglot.url + "/")
    assert client.translate("Good morning.") == "Guten Morgen."
    assert client.translate_batch(["Good morning.", "Thank you."]) == [
        "Guten Morgen.",
        client.translate("Thank you."),
    ]
