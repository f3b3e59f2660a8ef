import lzma
from pathlib import Path

import pytest

from model.training.parallel_text import read_pairs

LINES = "One.\tEins.\nTwo \u2028 three.\tZwei, drei.\r\n"
BOTH = ("en", "de")
TMX = """<?xml version="1.0" encoding="UTF-16"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="fr"/><body><!-- a comment -->
 <tu><tuv xml:lang="fr"><seg>Un.</seg></tuv><tuv xml:lang="de-AT"><seg>Ein <bpt i="1">&lt;b></bpt>rotes
   <hi>Haus</hi><ept i="1">&lt;/b></ept>.</seg></tuv><tuv xml:lang="en_US"><seg>A red<ph x="1">{0}</ph> house.
   </seg></tuv></tu>
 <tu><tuv xml:lang="en"><seg>Only English.</seg></tuv></tu>
 <tu><tuv lang="EN"><seg>Two &amp; three.</seg></tuv><tuv lang="DE"><seg>Zwei &amp; drei.</seg></tuv></tu>
</body></tmx>"""
XLIFF_1 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<file source-language="de-DE" target-language="en"><body>
 <trans-unit id="1"><source>Ein <g id="1">Haus</g><x id="2"/>.</source><target>A house.</target>
  <alt-trans><source>Nicht</source><target>Not</target></alt-trans></trans-unit>
 <trans-unit id="2"><source>Ohne Ziel.</source></trans-unit>
 <trans-unit id="3"><source>Roh.</source><target state="new">Raw.</target></trans-unit>
 <trans-unit id="4" translate="no"><source>X1</source><target>X1</target></trans-unit>
</body></file>
<file source-language="en" target-language="de"><body>
 <trans-unit id="5"><source>Yes.</source><target state="final">Ja.</target></trans-unit></body></file></xliff>"""
PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "Open "
"file"
msgstr "Datei öffnen"

#, fuzzy
msgid "Close"
msgstr "Schloss"

msgid "Empty"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

#~ msgid "Old"
#~ msgstr "Alt"
"""
MESSAGES = [("Open file", "Datei öffnen"), ("%d file", "%d Datei"), ("%d files", "%d Dateien")]


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.xz"])
def test_pairs_are_read_plain_and_compressed(name: str, tmp_path: Path) -> None:
    content = LINES.encode()
    (tmp_path / name).write_bytes(lzma.compress(content) if name.endswith("xz") else content)
    # A line separator of Unicode ends no line.
    assert list(read_pairs(tmp_path / name)) == [("One.", "Eins."), ("Two \u2028 three.", "Zwei, drei.")]


@pytest.mark.parametrize("line", ["Two.", "Two.\tZwei.\t2", "Two.\t ", ""])
def test_a_line_that_is_no_pair_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(f"One.\tEins.\n{line}\nThree.\tDrei.\n", "utf-8")
    with pytest.raises(ValueError, match=r"pairs\.tsv, line 2: a line must have two columns"):
        list(read_pairs(tmp_path / "pairs.tsv"))


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_bytes("One.\tEins.\nStreet.\tStraße.\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"pairs\.tsv, line 2: not UTF-8 at byte 13"):
        list(read_pairs(tmp_path / "pairs.tsv"))


def test_a_compressed_file_that_is_damaged_or_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv.xz"
    whole = lzma.compress(LINES.encode() * 1000)
    for content in (whole[: len(whole) // 2], whole[:-20] + bytes(20), LINES.encode()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"pairs\.tsv\.xz is damaged, truncated or not compressed with xz"):
            list(read_pairs(path))


def _written(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    content = text.encode(encoding)
    path.write_bytes(lzma.compress(content) if name.endswith(".xz") else content)
    return path


@pytest.mark.parametrize("name", ["memory.tmx", "memory.TMX", "memory.tmx.xz"])
def test_units_of_a_memory_with_both_languages_are_pairs(name: str, tmp_path: Path) -> None:
    path = _written(tmp_path, name, TMX, "utf-16")
    pairs = [("A red house.", "Ein rotes Haus."), ("Two & three.", "Zwei & drei.")]
    assert list(read_pairs(path, BOTH)) == pairs
    # The languages decide, whatever the columns of other files are.
    assert list(read_pairs(path, ("de", "en"), swap_columns=True)) == [pair[::-1] for pair in pairs]


def test_a_memory_without_both_languages_is_rejected_with_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"m\.tmx: no unit has the languages en and it\. Languages of the file: de, en, fr"
    ):
        list(read_pairs(_written(tmp_path, "m.tmx", TMX, "utf-16"), ("en", "it")))


@pytest.mark.parametrize("name", ["a.xliff", "a.xlf"])
def test_translated_segments_of_xliff_are_pairs_in_the_direction_of_the_training(name: str, tmp_path: Path) -> None:
    path = _written(tmp_path, name, XLIFF_1)
    assert list(read_pairs(path, BOTH)) == [("A house.", "Ein Haus."), ("Yes.", "Ja.")]
    assert list(read_pairs(path, ("de", "en"))) == [("Ein Haus.", "A house."), ("Ja.", "Yes.")]


def test_translated_messages_of_a_catalogue_are_pairs(tmp_path: Path) -> None:
    path = _written(tmp_path, "a.po", PO)
    assert list(read_pairs(path, BOTH)) == MESSAGES
    assert list(read_pairs(path, ("de", "en"), swap_columns=True)) == [pair[::-1] for pair in MESSAGES]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.tmx", b"<tmx><body><tu>", "not well-formed XML"),
        ("a.xlf", b"<xliff", "not well-formed XML"),
        ("a.po", b'msgid "a"\nnothing "b"\n', "not a gettext catalogue"),
        ("a.po", 'msgid "ä"\n'.encode("latin-1"), "not UTF-8 at byte 8"),
    ],
)
def test_a_damaged_file_is_named(name: str, content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}: {reason}"):
        list(read_pairs(tmp_path / name, BOTH))


def test_no_entity_of_a_memory_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", "utf-8")
    text = (
        f'<!DOCTYPE tmx [<!ENTITY file SYSTEM "{tmp_path / "secret"}"><!ENTITY inner "inner">]><tmx><tu>'
        '<tuv xml:lang="en"><seg>One &file;&inner;.</seg></tuv><tuv xml:lang="de"><seg>Eins.</seg></tuv></tu></tmx>'
    )
    assert list(read_pairs(_written(tmp_path, "a.tmx", text), BOTH)) == [("One .", "Eins.")]
