"""Brackets around sentences, single quotation marks, remarks, and names with signs."""

import pytest

from server.text.items.kinds import ItemKind
from server.text.items.matching import find_items
from server.text.items.survival import Answer
from server.text.readers.plain_text import may_be_special
from server.text.readers.unknown_characters import UnknownCharacters

_UNKNOWN = UnknownCharacters(map(chr, range(0x2100)))


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("(He laughs.)", "( )"),
        ("[He laughs]", "[ ]"),
        ("It rained. (He laughed.) She left.", "( )"),
        ("It rained. (See below)", "( )"),
        ("The dog (Rex) is here.", ""),
        ("Open the file(s).", ""),
        ("It is here :) and here (", ""),
        ("They was [sic] here.", "[sic]"),
        ("A dog (!) came.", "(!)"),
        ("He said 'good morning' to me.", "' '"),
        ("'Wait here,' he said.", "' '"),
        ("'I don't know,' he said.", "' '"),
        ("I don't know if it's the boys' room.", ""),
        ("Rock 'n' roll, 'tis the dogs' home.", ""),
        ("Ich hab's nicht, und 'ne Frau geht's an.", ""),
        ("Press ‘Start’ and don’t wait.", "‘ ’"),
        ("Die ‚Freunde‘ kamen.", "‚ ‘"),
        ("I use C#, C++ and .NET for A/B tests of TCP/IP.", "C# C++ .NET A/B TCP/IP"),
        ("R&D and Q&A at AT&T.", "R&D Q&A AT&T"),
        ("HE/SHE AND/OR YES/NO", ""),
        ("and/or, he/she, c/o, w/o", ""),
    ],
)
def test_pairs_and_names_are_found_and_apostrophes_are_not(text: str, items: str) -> None:
    kinds = (ItemKind.SIGN, ItemKind.IDENTIFIER)
    assert [text[each.start : each.end] for each in find_items(text) if each.kind in kinds] == items.split()
    if items:
        assert may_be_special(text, _UNKNOWN)
        assert may_be_special(f"The first line.\n{text}\nThe last line.", _UNKNOWN)


@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [
        ("Er sagte 'guten Morgen' zu mir.", True),
        ("Er sagte ‚guten Morgen‘ zu mir.", True),
        ("Er sagte „guten Morgen“ zu mir.", True),
        ("Er sagte guten Morgen zu mir.", False),
        ("Er hat's 'guten Morgen genannt.", False),
    ],
)
def test_a_quotation_is_kept_in_any_marks(answer: str, is_kept: bool) -> None:
    spans = Answer(answer, "en", "de").find([(ItemKind.SIGN, "'"), (ItemKind.SIGN, "'")])
    assert (None not in spans) == is_kept


def test_pairs_are_found_in_time_that_grows_with_the_text() -> None:
    for unit in ("(", ")", "( ", "'a ", "a' ", "‘a", "[a", ". (a"):
        assert len(list(find_items(unit * 3000))) >= 0
