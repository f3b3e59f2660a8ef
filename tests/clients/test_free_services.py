"""Python clients of free services: their addresses are constants, which a program can replace."""

import json

from tests.clients.environments import python_environment, run

DEEP_TRANSLATOR = """
import json, sys
from deep_translator import DeeplTranslator, GoogleTranslator, LibreTranslator, MicrosoftTranslator, constants
url = sys.argv[1]
constants.BASE_URLS |= {
    "GOOGLE_TRANSLATE": url + "/m",
    "MICROSOFT_TRANSLATE": url + "/translate?api-version=3.0",
    "DEEPL_FREE": url + "/{version}/",
}
MicrosoftTranslator._get_supported_languages = lambda self: {"english": "en", "german": "de"}  # its address is fixed
clients = {
    "google": GoogleTranslator("auto", "de"),
    "microsoft": MicrosoftTranslator("en", "de", api_key="any"),
    "deepl": DeeplTranslator("en", "de", api_key="any"),
    "libre": LibreTranslator("en", "de", api_key="any", custom_url=url + "/"),
}
print(json.dumps({name: client.translate_batch(["Good morning.", "Thank you."]) for name, client in clients.items()}))
"""

TRANSLATORS = """
import os, sys
os.environ["translators_default_region"] = "EN"  # otherwise the import asks another host for the region
import translators
print(translators.translate_text(
    "Good morning.", translator="google", from_language="en", to_language="de",
    reset_host_url=sys.argv[1] + "/google", if_check_reset_host_url=False,
))
"""

PYGTRANS = """
import json, sys
from pygtrans import ApiKeyTranslate, Translate
cloud = sys.argv[1] + "/language/translate/v2"
ApiKeyTranslate._BASE_URL = cloud
ApiKeyTranslate._DETECT_URL, ApiKeyTranslate._LANGUAGE_URL = cloud + "/detect", cloud + "/languages"
paid, free = ApiKeyTranslate("any", target="de"), Translate(target="de")
free.TRANSLATE_URL = sys.argv[1] + "/translate_a/t"
print(json.dumps({
    "paid": [each.translatedText for each in paid.translate(["Good morning.", "Thank you."])],
    "free": [each.translatedText for each in free.translate(["Good morning.", "Thank you."])],
    "detected": [paid.detect("Where is the railway station?").language, free.detect("It is late.").language],
    "languages": [each.language for each in paid.languages()],
}))
"""

GERMAN = ["Guten Morgen.", "Vielen Dank."]


def test_deep_translator(url: str) -> None:
    programs = python_environment("deep-translator==1.11.4")
    printed = json.loads(run(str(programs / "python"), "-c", DEEP_TRANSLATOR, url))
    assert printed == dict.fromkeys(("google", "microsoft", "deepl", "libre"), GERMAN)


def test_translators(url: str) -> None:
    programs = python_environment("translators==6.0.4")
    assert run(str(programs / "python"), "-c", TRANSLATORS, url).strip() == GERMAN[0]


def test_pygtrans(url: str) -> None:
    programs = python_environment("pygtrans==1.6.2")
    printed = json.loads(run(str(programs / "python"), "-c", PYGTRANS, url))
    assert (printed["paid"], printed["free"], printed["detected"]) == (GERMAN, GERMAN, ["en", "en"])
    assert {"de", "en"} <= set(printed["languages"])
