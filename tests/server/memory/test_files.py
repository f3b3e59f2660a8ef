"""Files of translation memories."""

from dataclasses import fields
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest

from server.interface.errors import InvalidDocument
from server.memory.files import check_file, languages_of, read_pairs, write_segments
from server.memory.store import Memory, Pair, Segment

_TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-US" segtype="sentence"/><body>
<tu><prop type="x-context">menu</prop>
 <tuv xml:lang="en-US"><seg>Open the <bpt i="1">&lt;b></bpt>pump<ept i="1">&lt;/b></ept> <hi>now</hi>.</seg></tuv>
 <tuv xml:lang="de"><seg>Jetzt die Pumpe öffnen.</seg></tuv>
 <tuv xml:lang="fr"><seg>Ouvrez la pompe.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Without a translation</seg></tuv></tu>
<tu><tuv xml:lang="en-us"><seg>Stop!</seg></tuv><tuv lang="de"><seg>Halt!</seg></tuv></tu>
</body></tmx>"""
_MEMORY = Memory(
    1, "id", "Legal", "en", ("de",), "", False, 2, datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
)
_SEGMENTS = [
    Segment("Open & close <it>", "de", "Öffnen\tund\nschließen", "menu", "me", _MEMORY.created, _MEMORY.changed, 1),
    Segment("Stop!", "de", "Halt!", None, None, _MEMORY.created, _MEMORY.changed, 2),
]


def _tmx_of(*units: str, source: str = "en-US") -> str:
    return f'<tmx version="1.4"><header srclang="{source}"/><body>{"".join(units)}</body></tmx>'


def _unit(**texts: str) -> str:
    variants = (f'<tuv xml:lang="{tag.replace("_", "-")}"><seg>{text}</seg></tuv>' for tag, text in texts.items())
    return f"<tu>{''.join(variants)}</tu>"


def _read(path: Path, source: str | None = None, target: str | None = None) -> list[Pair | None]:
    check_file(path, path.name)
    return list(read_pairs(path, path.name, source, target))


def test_tmx_is_read_without_codes_in_all_its_languages(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(_TMX, "utf-8")
    assert languages_of(path, path.name) == ("en-US", None)
    assert _read(path) == [
        Pair("Open the pump now.", "de", "Jetzt die Pumpe öffnen.", "menu"),
        Pair("Open the pump now.", "fr", "Ouvrez la pompe.", "menu"),
        None,
        Pair("Stop!", "de", "Halt!"),
    ]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ('Hello <ph type="fmt">{name}</ph>, <ph>%d</ph> items', "Hello {name}, %d items"),
        ('one<ph type="lb"/>two<ph x="1">&lt;br1/&gt;</ph>three<ph/>.', "one two three."),
        ('un<bpt i="1">&lt;i></bpt>break<ept i="1">&lt;/i></ept>able<it pos="end">\\b0</it>s', "unbreakables"),
        ('See<ph>&lt;img alt="<sub>a dog</sub>"></ph> <hi type="x">here<ph>&lt;b></ph></hi>!', "See here!"),
        ("a <!-- no -->b<?no?> <![CDATA[<c>]]>", "a b <c>"),
    ],
)
def test_inline_codes_leave_their_place_or_their_placeholder(tmp_path: Path, segment: str, text: str) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(_tmx_of(_unit(en=segment, de="x")), "utf-8")
    assert _read(path) == [Pair(text, "de", "x")]


def test_all_units_have_the_source_language_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    reversed_unit = _unit(de="Zwei", en="Two")
    units = (_unit(en="One", de="Eins"), reversed_unit, reversed_unit.replace("<tu>", '<tu srclang="de">'))
    path.write_text(_tmx_of(*units, _unit(fr="Trois", de="Drei"), source="*all*"), "utf-8")
    assert languages_of(path, path.name) == ("en", None)
    assert _read(path, "en") == [Pair("One", "de", "Eins"), Pair("Two", "de", "Zwei"), Pair("Two", "de", "Zwei"), None]
    assert _read(path, "de", "fr") == [None, None, None, Pair("Drei", "fr", "Trois")]


def test_the_region_of_the_source_is_preferred(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(_tmx_of(_unit(en_GB="colour", en_US="color", de_AT="A", de_DE="D")), "utf-8")
    assert _read(path, None, "de-DE") == [Pair("color", "de-DE", "D")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "windows-1251", "iso-8859-5"])
def test_tmx_is_read_in_its_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.tmx"
    declared = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>'
    text = _tmx_of(_unit(en="Yes", ru="Да")).replace("<tmx", '<tmx xmlns="http://www.lisa.org/tmx14"')
    path.write_text(declared + text, encoding)
    assert _read(path) == [Pair("Yes", "ru", "Да")]


def test_catalogues_are_read_without_what_is_not_approved(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    path.write_text(
        'msgid ""\nmsgstr "Language: de\\n"\n\n#, fuzzy\nmsgid "A b"\nmsgstr "x"\n\nmsgctxt "menu"\nmsgid "Stop"\n'
        'msgstr "Halt"\n\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"\n\n'
        'msgid "Open"\nmsgstr ""\n',
        "utf-8",
    )
    assert languages_of(path, path.name) == (None, "de")
    assert _read(path, "en", "de") == [
        Pair("Stop", "de", "Halt", "menu"),
        Pair("%d file", "de", "%d Datei"),
        Pair("%d files", "de", "%d Dateien"),
        None,
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tmx", _TMX.replace("</tuv></tu>", "</tu>", 1), "line 7"),
        ("a.tmx", '<!DOCTYPE tmx [<!ENTITY a "b">]><tmx/>', "entity"),
        ("a.tmx", f"<!DOCTYPE tmx SYSTEM 'tmx14.dtd'>\n{_tmx_of(_unit(en='a&nbsp;b', de='c'))}", "line 2.*nbsp"),
        ("a.tmx", _tmx_of(_unit(en="<hi>" * 300 + "</hi>" * 300, de="c")), "too complex"),
        ("a.tmx", "<html><body/></html>", "not a translation memory"),
        ("a.tmx", "", "no element"),
        ("a.tsv", "Stop\tHalt\nOpen\n", "line 2"),
        ("a.po", 'msgid "Stop"\nnonsense\n', "line 2"),
        ("a.csv", "a,b", r"\.tmx, \.tsv or \.po"),
    ],
)
def test_a_malformed_file_is_refused_with_the_line_and_the_reason(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    with pytest.raises(InvalidDocument, match=message):
        _read(path)


@pytest.mark.parametrize("kind", ["tmx", "tsv", "po"])
def test_what_is_written_is_read_again(tmp_path: Path, kind: str) -> None:
    written = StringIO()
    write_segments(kind, _MEMORY, _SEGMENTS, written)
    path = tmp_path / f"a.{kind}"
    path.write_text(written.getvalue(), "utf-8")
    kept = len(fields(Pair)) if kind == "tmx" else 4  # the others have neither times nor authors
    expected = [Pair(*(getattr(each, field.name) for field in fields(Pair)[:kept])) for each in _SEGMENTS]
    if kind == "tsv":
        expected[0] = Pair("Open & close <it>", "de", "Öffnen und schließen", "menu")
    assert _read(path, "en", "de") == expected
