"""Gettext catalogues: what is filled in, and what stays."""

from collections.abc import Sequence

import polib
import pytest

from server.documents.rewriting import Translate
from server.interface.errors import InvalidDocument
from tests.server.documents.documents import LOUD, SAME, translated

CATALOGUE = r"""# Comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. extracted
#: main.c:1
#, c-format
msgctxt "menu"
msgid "Open %s"
msgstr ""

msgid "Done"
msgstr "Erledigt von Hand"

#, fuzzy
msgid "Guess"
msgstr "Geraten"

msgid "one file\n"
msgid_plural "many files\n"
msgstr[0] ""
msgstr[1] ""

#~ msgid "obsolete"
#~ msgstr ""
"""


def test_messages_without_a_translation_get_one_and_the_others_stay() -> None:
    filled = polib.pofile(translated(CATALOGUE.encode(), ".po", LOUD).decode())
    by_id = {entry.msgid: entry for entry in filled}
    assert by_id["Open %s"].msgstr == "OPEN %S"
    assert by_id["Open %s"].msgctxt == "menu"
    assert by_id["Open %s"].flags == ["c-format"]
    assert by_id["Open %s"].occurrences == [("main.c", "1")]
    assert by_id["Done"].msgstr == "Erledigt von Hand"
    assert by_id["Guess"].msgstr == "Geraten"
    assert by_id["one file\n"].msgstr_plural == {0: "ONE FILE\n", 1: "MANY FILES\n"}
    assert by_id["obsolete"].msgstr == ""
    assert filled.metadata["Plural-Forms"] == "nplurals=2; plural=(n != 1);"


def test_a_finished_catalogue_is_the_same_byte_for_byte() -> None:
    finished = translated(CATALOGUE.encode(), ".po", SAME)
    assert translated(finished, ".po", LOUD) == finished


def test_a_string_that_names_a_file_is_not_opened_as_a_catalogue() -> None:
    with pytest.raises(InvalidDocument, match="cannot be read"):
        translated(b"/etc/passwd", ".po", SAME)


def test_only_empty_messages_change() -> None:
    filled = translated(CATALOGUE.encode(), ".po", LOUD).decode()
    assert filled == (
        CATALOGUE.replace('Open %s"\nmsgstr ""', 'Open %s"\nmsgstr "OPEN %S"')
        .replace('msgstr[0] ""', 'msgstr[0] "ONE FILE\\n"')
        .replace('msgstr[1] ""', 'msgstr[1] "MANY FILES\\n"')
    )


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_marks_and_what_is_written_in_an_odd_way_stay(line_end: str, mark: str) -> None:
    odd = (
        mark + 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf8\\n"\n\n\n#~ msgid "a"\n#~ msgstr "b"\n'
        '#:   a.c:1   b.c:2\n  msgid   "A "\n"door"\n msgstr   "Eine "\n"Tür"\n\nmsgid "B"\nmsgstr %s'
    ).replace("\n", line_end)
    odd = odd.replace("\\" + line_end, "\\n")
    assert translated((odd % '""').encode(), ".po", LOUD) == (odd % '"B"').encode()
    assert translated((odd % '"x"').encode(), ".po", LOUD) == (odd % '"x"').encode()


def test_plural_forms_that_people_wrote_stay() -> None:
    catalogue = 'msgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] "MEIN TEXT %d"\n'
    filled = translated(f'{catalogue}msgstr[1] ""\nmsgstr[2] ""\n""\n'.encode(), ".po", LOUD).decode()
    assert filled == f'{catalogue}msgstr[1] "%D FILES"\nmsgstr[2] "%D FILES"\n'


def test_long_translations_are_wrapped_with_the_line_ends_of_the_file() -> None:
    text = " ".join(["word"] * 30)
    filled = translated(f'msgid "{text}"\r\nmsgstr ""\r\n\r\n'.encode(), ".po", LOUD)
    assert filled.count(b"\r\n") == filled.count(b"\n") > 4
    [entry] = polib.pofile(filled.decode())
    assert entry.msgstr == text.upper()


@pytest.mark.parametrize(
    ("charset", "written", "encoding"),
    [
        ("US-ASCII", "UTF-8", "utf-8"),
        ("ISO-8859-5", "UTF-8", "utf-8"),
        ("ISO-8859-1", "ISO-8859-1", "iso-8859-1"),
        ("UTF-8", "UTF-8", "utf-8"),
    ],
)
def test_a_translation_that_its_encoding_cannot_write_makes_it_utf8(charset: str, written: str, encoding: str) -> None:
    async def german(texts: Sequence[str]) -> list[str]:
        return ["Tür" for _ in texts]

    catalogue = 'msgid ""\nmsgstr "Content-Type: text/plain; charset={}\\n"\n\nmsgid "door"\nmsgstr "{}"\n'
    filled = translated(catalogue.format(charset, "").encode(), ".po", Translate(german))
    assert filled == catalogue.format(written, "Tür").encode(encoding)


@pytest.mark.parametrize("charset", ["hex", "undefined", "punycode", "CHARSET", "no-such-one"])
def test_an_unknown_encoding_is_read_as_utf8(charset: str) -> None:
    catalogue = f'msgid ""\nmsgstr "Content-Type: text/plain; charset={charset}\\n"\n\nmsgid "Tür"\nmsgstr ""\n'
    filled = translated(catalogue.encode(), ".po", LOUD).decode()
    assert filled == catalogue.replace('Tür"\nmsgstr ""', 'Tür"\nmsgstr "TÜR"')


def test_a_declaration_that_is_repeated_without_end_is_read_soon() -> None:
    catalogue = 'msgid ""\nmsgstr "' + "Content-Type: " * 50_000 + '"\n'
    assert translated(catalogue.encode(), ".po", SAME).decode() == catalogue


@pytest.mark.parametrize("line", ['"a"', '  "a"', "# a", "#. a", '#~ "a"'])
def test_a_text_of_very_many_lines_is_refused_with_the_number(line: str) -> None:
    """polib would take minutes for one as long as a document may be."""
    catalogue = CATALOGUE + '\nmsgid ""\n' + f"{line}\n" * 20_001 + 'msgstr ""\n'
    with pytest.raises(InvalidDocument, match=r"may have 20000 lines. The one around line 200\d\d has more"):
        translated(catalogue.encode(), ".po", SAME)


@pytest.mark.parametrize(
    "text", ['msgid "one two', 'msgid ""\n"one two', 'msgctxt "\nmsgid "one two"', 'msgid "one" two']
)
def test_a_text_without_an_end_is_refused_with_its_line(text: str) -> None:
    line = text[: text.index("two")].count("\n") + 2 if "msgctxt" not in text else 2
    with pytest.raises(InvalidDocument, match=rf"line {line}\b"):
        translated(f'# a comment "\n{text}\nmsgstr ""\n'.encode(), ".po", SAME)
