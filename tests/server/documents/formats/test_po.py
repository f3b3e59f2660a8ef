"""Gettext catalogues: what is filled in, and what stays."""

import contextlib
import gettext
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import polib
import pytest
from babel.messages.plurals import PLURALS

from server.documents.formats.options import FormatOptions
from server.documents.formats.registry import format_of
from server.documents.rewriting import Translate
from server.interface.errors import DocumentTooComplex, InvalidDocument
from tests.server.documents.documents import LOUD, SAME, read_soon, translated

_DIRECTIVE = re.compile(r"(%(?:\(\w+\)|\d+\$)?[-+ #0']*\d*(?:\.\d+)?l*[a-zA-Z%]|%\d|\{\w*\})")


async def loud_words(texts: Sequence[str]) -> list[str]:
    """Return the texts in capitals but for what programs read."""
    return [
        "".join(each if index % 2 else each.upper() for index, each in enumerate(_DIRECTIVE.split(text)))
        for text in texts
    ]


LOUD_WORDS = Translate(loud_words)
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


def test_a_string_that_names_a_file_is_not_opened_as_a_catalogue() -> None:
    with pytest.raises(InvalidDocument, match="cannot be read"):
        translated(b"/etc/passwd", ".po", SAME)


def test_only_empty_messages_change() -> None:
    filled = translated(CATALOGUE.encode(), ".po", LOUD_WORDS).decode()
    assert filled == (
        CATALOGUE.replace('Open %s"\nmsgstr ""', 'Open %s"\nmsgstr "OPEN %s"')
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
    ],
)
def test_a_translation_that_its_encoding_cannot_write_makes_it_utf8(charset: str, written: str, encoding: str) -> None:
    async def german(texts: Sequence[str]) -> list[str]:
        return ["Tür" for _ in texts]

    catalogue = 'msgid ""\nmsgstr "Content-Type: text/plain; charset={}\\n"\n\nmsgid "door"\nmsgstr "{}"\n'
    filled = translated(catalogue.format(charset, "").encode(), ".po", Translate(german))
    assert filled == catalogue.format(written, "Tür").encode(encoding)


@pytest.mark.parametrize("charset", ["hex", "CHARSET"])
def test_an_unknown_encoding_is_read_as_utf8(charset: str) -> None:
    catalogue = f'msgid ""\nmsgstr "Content-Type: text/plain; charset={charset}\\n"\n\nmsgid "Tür"\nmsgstr ""\n'
    filled = translated(catalogue.encode(), ".po", LOUD).decode()
    assert filled == catalogue.replace('Tür"\nmsgstr ""', 'Tür"\nmsgstr "TÜR"').replace(charset, "UTF-8")


def test_a_declaration_that_is_repeated_without_end_is_read_soon() -> None:
    catalogue = 'msgid ""\nmsgstr "' + "Content-Type: " * 50_000 + '"\n'
    assert translated(catalogue.encode(), ".po", SAME).decode() == catalogue


@pytest.mark.parametrize(
    "unit",
    ['"a"\n', '"a"', "# a\n", "#, a,\n", '#~ "a"\n', 'msgstr ""\n', 'msgid "a"\n', 'msgstr[1] ""\n', "\\\\", " "],
)  # fmt: skip
def test_much_of_anything_is_read_soon(unit: str) -> None:
    with contextlib.suppress(InvalidDocument, DocumentTooComplex):
        read_soon(CATALOGUE + '\nmsgid ""\n' + unit * (200_000 // len(unit)) + 'msgstr ""\n', ".po")


@pytest.mark.parametrize(
    "text", ['msgid "one two', 'msgid ""\n"one two', 'msgctxt "\nmsgid "one two"', 'msgid "one" two']
)
def test_a_text_without_an_end_is_refused_with_its_line(text: str) -> None:
    line = text[: text.index("two")].count("\n") + 2 if "msgctxt" not in text else 2
    with pytest.raises(InvalidDocument, match=rf"line {line}\b"):
        translated(f'# a comment "\n{text}\nmsgstr ""\n'.encode(), ".po", SAME)


def _check(catalogue: bytes, folder: Path) -> None:
    """Compile a catalogue with all checks of gettext."""
    if shutil.which("msgfmt") is None:
        pytest.skip("needs msgfmt of gettext")
    file = folder / "checked.po"
    file.write_bytes(catalogue)
    compiled = subprocess.run(
        ["msgfmt", "--check", "--output-file=/dev/null", file], capture_output=True, text=True, check=False
    )
    assert compiled.returncode == 0, compiled.stderr


FLAGGED = [
    ("c", "the boat %s has %lu rooms of %5.1f%%"),
    ("objc", "the boat %@ is old"), ("python", "the boat %(name)s is old"),
    ("python-brace", "the boat {name!r} has {0.x[1]} rooms"), ("java", "the boat {0} has {1,number,integer} rooms"),
    ("java-printf", "the boat %1$s has %2$,d rooms"), ("csharp", "the boat {0} has {1,10:N2} rooms"),
    ("javascript", "the boat %s has %d rooms"),
    ("scheme", "the boat ~a is old"), ("lisp", "the boat ~A has ~D rooms~%"),
    ("elisp", "the boat %s is old"), ("rust", "the boat {name} has {0} rooms"), ("go", "the boat %v has %[2]d rooms"),
    ("ruby", "the boat %<name>s has %{n} rooms"), ("object-pascal", "the boat %0:s has %1:d rooms"),
    ("boost", "the boat %1% has %|2$d| rooms"), ("gcc-internal", "the boat %qT has %<rooms%>"),
    ("qt", "the boat %1 has %L2 rooms"), ("smalltalk", "the boat %1 is old"), ("perl-brace", "the boat {name} is old"),
]  # fmt: skip


@pytest.mark.parametrize(("flag", "text"), FLAGGED)
def test_a_translation_has_the_directives_of_every_format_or_is_not_written(
    flag: str, text: str, tmp_path: Path
) -> None:
    entry = f'{HEADER}\n#, {flag}-format\nmsgid "{text}"\nmsgstr ""\n'

    async def german(texts: Sequence[str]) -> list[str]:
        return [each.replace("the boat", "das Boot") for each in texts]

    async def without_last(texts: Sequence[str]) -> list[str]:
        return [re.sub(r"[%{~][^%{~]*$", "alt", each) for each in texts]

    filled = translated(entry.encode(), ".po", Translate(german))
    assert "das Boot" in filled.decode()
    _check(filled, tmp_path)
    assert translated(entry.encode(), ".po", Translate(without_last)).decode() == entry


HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
PLURAL = '#, c-format\nmsgid "%s"\nmsgid_plural "%%d boats"\n'


@pytest.mark.parametrize(("num_forms", "rule"), sorted(set(PLURALS.values())))
@pytest.mark.parametrize("singular", ["one boat", "%d boat"])
@pytest.mark.parametrize("num_written", [0, 2])
def test_every_number_of_every_language_has_a_form_with_the_number(
    num_forms: int, rule: str, singular: str, num_written: int, tmp_path: Path
) -> None:
    head = f'{HEADER}"Plural-Forms: nplurals={num_forms}; plural={rule};\\n"\n\n{PLURAL % singular}'
    forms = "".join(f'msgstr[{form}] ""\n' for form in range(max(1, num_written)))
    filled = translated(f"{head}{forms}\n".encode(), ".po", LOUD_WORDS)
    [entry] = polib.pofile(filled.decode())
    assert list(entry.msgstr_plural) == list(range(num_forms))
    form_of = gettext.c2py(rule)
    for number in range(300):
        is_one = number == 1 and [each for each in range(1000) if form_of(each) == form_of(1)] == [1]
        takes_singular = is_one or (form_of(number) == form_of(1) and singular.startswith("%d"))
        assert entry.msgstr_plural[form_of(number)] == (
            singular.replace("boat", "BOAT").replace("one", "ONE") if takes_singular else "%d BOATS"
        )
    assert filled.decode().startswith(head)
    if num_written in (0, num_forms):
        _check(filled, tmp_path)


@pytest.mark.parametrize("lost", ["%d boats", "one boat of %s"])
@pytest.mark.parametrize("num_written", [1, 3])
def test_a_plural_of_which_a_form_lost_a_directive_gets_no_form(lost: str, num_written: int, tmp_path: Path) -> None:
    async def lossy(texts: Sequence[str]) -> list[str]:
        return [text.partition("%")[0] + "lost" if text == lost else text.replace("boat", "BOAT") for text in texts]

    head = f'{HEADER}"Plural-Forms: nplurals=3; plural=n==1 ? 0 : n<5 ? 1 : 2;\\n"\n\n'
    forms = "".join(f'msgstr[{form}] ""\n' for form in range(num_written))
    other = '#, c-format\nmsgid "one boat of %s"\nmsgid_plural "all boats of %s"\n'
    filled = translated(f"{head}{PLURAL % 'one boat'}{forms}\n{other}{forms}".encode(), ".po", Translate(lossy))
    whole = [[*filter(None, entry.msgstr_plural.values())] for entry in polib.pofile(filled.decode())]
    assert sorted(map(len, whole)) == [0, 3]
    _check(filled, tmp_path)


@pytest.mark.parametrize("language", ["de", "pt-BR", "ar", "no-such-language"])
@pytest.mark.parametrize(
    "stated", ["", '"Language: \\n"\n', '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n']
)
def test_a_template_gets_the_language_and_its_plurals(language: str, stated: str, tmp_path: Path) -> None:
    template = f'#, fuzzy\n{HEADER}{stated}\n{PLURAL % "one boat"}msgstr[0] ""\nmsgstr[1] ""\n'.replace(
        "UTF-8", "CHARSET"
    )
    filled = translated(template.encode(), ".pot", LOUD_WORDS, options=FormatOptions(language=language))
    catalogue = polib.pofile(filled.decode())
    assert f"nplurals={len(catalogue[0].msgstr_plural)};" in catalogue.metadata["Plural-Forms"]
    assert catalogue.metadata["Content-Type"].endswith("=UTF-8")
    assert catalogue.metadata.get("Language", language).replace("_", "-") == language
    assert all("%d" in form or form == "ONE BOAT" for form in catalogue[0].msgstr_plural.values())
    _check(filled, tmp_path)


def test_a_template_becomes_a_catalogue() -> None:
    assert format_of("app.pot").result_name("app.de.pot") == "app.de.po"


@pytest.mark.parametrize("pieces", ['"a boat" " at sea"', '"a boat"\n" at sea"', '""\n  "a boat at"\t" sea"'])
def test_strings_may_share_a_line(pieces: str) -> None:
    assert translated(f'msgid {pieces}\nmsgstr "" ""\n'.encode(), ".po", LOUD).decode() == (
        f'msgid {pieces}\nmsgstr "A BOAT AT SEA"\n'
    )


@pytest.mark.parametrize(
    ("flag", "message", "translation", "expected"),
    [
        ("c-format", "%d of %s", "%s: %d", "%2$s: %1$d"),
        ("c-format", "%2$s and %1$d", "%1$d, %2$s", "%1$d, %2$s"),
        ("c-format", "5%% of %'d", "%'d: 5%%", "%'d: 5%%"),
        ("c-format", "5%% of it", "5% of it", None),
        ("c-format", "%*d of %s", "%s: %*d", None),
        ("python-format", "%(a)s of %(b)d", "%(b)d: %(a)s", "%(b)d: %(a)s"),
        ("python-brace-format", "{a} of {}", "{}: {a}", "{}: {a}"),
        ("qt-format", "%1 of %2", "%2: %1", "%2: %1"),
        ("", "%s of it", "of it", "of it"),
    ],
)  # fmt: skip
def test_a_translation_has_the_directives_of_its_message_or_is_not_written(
    flag: str, message: str, translation: str, expected: str | None, tmp_path: Path
) -> None:
    async def other(texts: Sequence[str]) -> list[str]:
        return [translation for _ in texts]

    catalogue = f'{HEADER}\n#, {flag}\nmsgid "{message}"\nmsgstr ""\n'
    filled = translated(catalogue.encode(), ".po", Translate(other))
    [entry] = polib.pofile(filled.decode())
    assert entry.msgstr == (expected or "")
    _check(filled, tmp_path)
