"""Files of translation memories."""

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
    Segment("Open & close <it>", "de", "Öffnen\tund\nschließen", "menu", 1, _MEMORY.created, _MEMORY.changed, "me"),
    Segment("Stop!", "de", "Halt!", None, 2, _MEMORY.created, _MEMORY.changed),
]


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
        check_file(path, name)


@pytest.mark.parametrize("kind", ["tmx", "tsv", "po"])
def test_what_is_written_is_read_again(tmp_path: Path, kind: str) -> None:
    written = StringIO()
    write_segments(kind, _MEMORY, _SEGMENTS, written)
    path = tmp_path / f"a.{kind}"
    path.write_text(written.getvalue(), "utf-8")
    expected = [Pair(each.source, each.language, each.target, each.context) for each in _SEGMENTS]
    if kind == "tsv":
        expected[0] = Pair("Open & close <it>", "de", "Öffnen und schließen", "menu")
    assert _read(path, "en", "de") == expected
