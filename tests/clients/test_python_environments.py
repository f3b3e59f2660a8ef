"""Python clients that pin what others do not want, each in an environment of its own."""

from pathlib import Path

from tests.clients.environments import python_environment, run

TRANSLATE = """
import sys
from translate import Translator
translator = Translator(provider="libre", from_lang="en", to_lang="de", base_url=sys.argv[1] + "/")
print(translator.translate("Good morning."))
"""

OPENAI = """
import sys
import openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="any", max_retries=0)
messages = [{"role": "user", "content": "Good morning."}]
print(client.chat.completions.create(model="kvasir:en-de", messages=messages).choices[0].message.content)
with client.chat.completions.create(model="kvasir:en-de", messages=messages, stream=True) as chunks:
    print("".join(chunk.choices[0].delta.content or "" for chunk in chunks))
print("kvasir:en-de" in [model.id for model in client.models.list()])
try:
    client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Write a poem."}])
except openai.BadRequestError as error:
    print(error.code)
"""

GOOGLE = """
import sys
from google.api_core.exceptions import BadRequest
from google.auth.credentials import AnonymousCredentials
from google.cloud import translate_v2
client = translate_v2.Client(client_options={"api_endpoint": sys.argv[1]}, credentials=AnonymousCredentials())
print(client.translate("Good morning.", target_language="de", source_language="en")["translatedText"])
several = client.translate(["Good morning.", "Where is the railway station?"], target_language="de", format_="text")
print(several[0]["translatedText"], several[1]["detectedSourceLanguage"])
print(client.detect_language("Where is the railway station?")["language"])
print([language["name"] for language in client.get_languages() if language["language"] == "de"])
try:
    client.translate("Tea.", target_language="xx", source_language="en")
except BadRequest as error:
    print(error.code)
"""

AZURE = """
import sys
from azure.ai.translation.text import TextTranslationClient
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError
client = TextTranslationClient(endpoint=sys.argv[1], credential=AzureKeyCredential("any"))
[item] = client.translate(body=["Good morning."], to_language=["de", "fr"], from_language="en")
print([(each.to, each.text) for each in item.translations])
[item] = client.translate(body=["Where is the railway station?"], to_language=["de"])
print(item.detected_language.language)
print(sorted(client.get_supported_languages(scope="translation").translation)[0])
try:
    client.translate(body=["Tea."], to_language=["xx"])
except HttpResponseError as error:
    print(error.status_code, error.error.code)
"""

PO_FILE = r"""
msgid ""
msgstr ""
"Language: de\n"
"Content-Type: text/plain; charset=UTF-8\n"

msgid "Good morning."
msgstr ""

msgid "The dog is old.\n"
msgstr ""

msgid "Thank you, %(name)s."
msgstr ""
"""


def test_translate(url: str) -> None:
    programs = python_environment("translate==3.8.1")
    assert run(str(programs / "python"), "-c", TRANSLATE, url).strip() == "Guten Morgen."


def test_openai(url: str) -> None:
    programs = python_environment("openai==3.54.0")
    printed = run(str(programs / "python"), "-c", OPENAI, url).split("\n")
    assert printed == ["Guten Morgen.", "Guten Morgen.", "True", "invalid_request", ""]


def test_google_cloud_translate(url: str) -> None:
    programs = python_environment("google-cloud-translate==3.28.0")
    printed = run(str(programs / "python"), "-c", GOOGLE, url).split("\n")
    assert printed == ["Guten Morgen.", "Guten Morgen. en", "en", "['German']", "400", ""]


def test_azure(url: str) -> None:
    programs = python_environment("azure-ai-translation-text==1.0.1")
    printed = run(str(programs / "python"), "-c", AZURE, url).split("\n")
    assert printed == ["[('de', 'Guten Morgen.'), ('fr', 'Guten Morgen.')]", "en", "de", "400 400019", ""]


def _transpolibre(url: str, po_file: Path) -> str:
    programs = python_environment("transpolibre==0.8.15", "libretranslatepy==2.1.4")
    po_file.write_text(PO_FILE, encoding="utf-8")
    arguments = ("-u", url, "-s", "en", "-t", "de", "-f", str(po_file))
    run(str(programs / "transpolibre"), *arguments, folder=po_file.parent)
    return po_file.read_text(encoding="utf-8")


def test_transpolibre(url: str, tmp_path: Path) -> None:
    written = _transpolibre(url, tmp_path / "x.po")
    assert 'msgid "Good morning."\nmsgstr "Guten Morgen."' in written
    assert 'msgstr "Der Hund ist alt.\\n"' in written
    assert written.count('msgstr ""') == 1
