"""Other people's LibreTranslate clients, unmodified, against a running server."""

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


def test_deep_translator(polyglot: Served) -> None:
    client = LibreTranslator(source="en", target="de", api_key="x", custom_url=polyglot.url + "/")
    assert client.translate("Good morning.") == "Guten Morgen."
    assert client.translate_batch(["Good morning.", "Thank you."]) == [
        "Guten Morgen.",
        client.translate("Thank you."),
    ]
