from collections.abc import Sequence

import pytest

from server.text.items.kinds import ItemKind
from server.text.protection.means import Means
from server.text.protection.model_input import InputItem, unit_words
from server.text.protection.sign_placement import may_be_added, place_signs
from server.text.protection.word_alignment import Range, links, words_of
from server.text.readers.units import ProtectedSpan, Unit


def _item(kind: ItemKind, text: str, word: int = 0, start: int = 0) -> InputItem:
    return InputItem(word, start, ProtectedSpan(start, start + len(text), text, kind), text, Means.PLACED, kind, text)


def _placed(source: str, answer: str, signs: str, occupied: Sequence[Range] = (), target: str = "de") -> str:
    """Return an answer with the signs of a source, of which each word is the translation of the same one."""
    spans = [ProtectedSpan(at, at + 1, each, ItemKind.SYMBOL) for at, each in enumerate(source) if each in signs]
    unit = Unit(source, source, (), tuple(spans), str)
    words = unit_words(unit, (0, len(source)))
    items = [_item(each.kind, each.output, words.index((each.start, each.end)), each.start) for each in spans]
    found = words_of(answer)
    texts = [source[slice(*word)] for word in words]
    # A table of words in both languages: only they decide.
    aligned = links(texts, [answer[slice(*word)] for word in found], None)
    placed = place_signs(unit, words, items, answer, found, aligned, occupied, ("en", target))
    assert [each.word for each in placed] == [each.word for each in items]
    assert [each.position for each in placed] == sorted(each.position for each in placed)
    text, position = "", 0
    for each in placed:
        text += answer[position : each.position]
        text += "_" * each.has_space_before + each.shown + "_" * each.has_space_behind
        position = each.position
    return text + answer[position:]


@pytest.mark.parametrize(
    ("source", "answer", "expected"),
    [
        ("a “b” c d", "a b c d", "a „b“ c d"),
        ("a b “c d”", "a b c d", "a b „c d“"),
        ("a “b” c", 'a "b c', 'a "„b“ c'),
        ("“a b” c d", "d c b a", "d c b „“a"),  # signs keep their order
        ("a b c “d", "d x", "„d x"),
        ("a – b", "a b", "a_–_ b"),
        ("– a b", "b a", "–_b a"),
        ("a b –", "b a", "b_–_ a"),
        ("a/b c", "a b c", "a/ b c"),
        ("c a b/", "a b c", "a b/ c"),
        ("a /b c", "c b a", "c /b a"),
        ("a …", "b a.", "b a._…_"),
        ("a … b c", "c b a", "c b a_…_"),
        ("(a b)", "b a.", "(b a.)"),
        ("c (a) b", "a b, c", "(a) b, c"),
        ("b c (a", "a b, c", "(a b, c"),
        ("c a) b", "c, b", "c), b"),
        ("c a/", "x", "x/"),
        ("c a/", "", "/"),
        ("a [", "c a", "c a_[_"),
    ],
)
def test_signs_stand_beside_the_translations_of_their_words(source: str, answer: str, expected: str) -> None:
    assert _placed(source, answer, "“”–/…()[") == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [("a /c b", "a /b c d"), ("a c b/", "a b c/ d"), ("b /a c", "/a b c d")],
)
def test_no_sign_stands_inside_an_item(source: str, expected: str) -> None:
    # "b c" is an item of the answer.
    assert _placed(source, "a b c d", "/", [(2, 5)]) == expected


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (ItemKind.SYMBOL, "–", True),
        (ItemKind.SYMBOL, "~", False),
        (ItemKind.ENTITY, "&amp;", False),
        (ItemKind.NUMBER, "7", False),
    ],
)
def test_entities_and_numbers_are_no_signs_that_can_be_added(kind: ItemKind, text: str, expected: bool) -> None:
    assert may_be_added(_item(kind, text)) is expected
