"""Python clients that pin what others do not want, each in an environment of its own."""

from pathlib import Path

from tests.clients.environments import python_environment, run

TRANSLATE = """
import sys
from translate import Translator
translator = Translator(provider="libre", from_lang="en", to_lang="de", base_url=sys.argv[1] + "/")
print(translator.translate("Good morning."))
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


def test_transpolibre_keeps_its_placeholders(url: str, tmp_path: Path) -> None:
    assert _transpolibre(url, tmp_path / "x.po").count("%(name)s") == 2
