import pytest

from server.text.readers.units import ProtectedSpan, Tag, Unit
from server.text.spans import SpanKind

_SPANS = (ProtectedSpan(2, 5, "345"), ProtectedSpan(6, 8, "78", SpanKind.SYMBOL))
_UNIT = Unit(
    "01234567890", "01abc5de89", (Tag(0, 2, "<a>", "</a>"), Tag(2, 8, "<b>", "</b>"), Tag(5, 5, "<i>")), _SPANS, str
)


def _unit(text: str, *spans: ProtectedSpan) -> Unit:
    return Unit(text, text, (), spans, str)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (_unit("a 7"), True),
        (_unit("77 !"), False),
        (_unit("abc", ProtectedSpan(0, 3, "abc")), False),
        (_unit("abc d", ProtectedSpan(0, 3, "abc")), True),
    ],
)
def test_words_are_letters_outside_of_spans(unit: Unit, expected: bool) -> None:
    assert unit.has_words is expected


def test_a_plain_unit_has_neither_tags_nor_spans() -> None:
    assert _unit("a").is_plain
    assert not _unit("a", ProtectedSpan(0, 1, "a")).is_plain
    assert not Unit("a", "a", (Tag(0, 1, "<b>"),), (), str).is_plain


@pytest.mark.parametrize(
    ("start", "end", "cuts", "tags"),
    [
        (0, 10, [0, 2, 2, 5, 5, 8], [0, 1, 2]),
        (3, 4, [], []),
        (2, 2, [2, 2], [0, 1]),
        (3, 5, [5, 5], [2]),
        (6, 8, [8], [1]),
    ],
)
def test_tags_of_a_range_begin_or_end_in_it(start: int, end: int, cuts: list[int], tags: list[int]) -> None:
    assert _UNIT.cuts(start, end) == cuts
    assert _UNIT.tags_of(start, end) == [_UNIT.tags[index] for index in tags]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 10, _SPANS), (2, 5, _SPANS[:1]), (3, 10, _SPANS[1:]), (0, 7, _SPANS[:1]), (3, 7, ())],
)
def test_spans_of_a_range_are_inside_as_a_whole(start: int, end: int, expected: tuple[ProtectedSpan, ...]) -> None:
    assert _UNIT.protected_in(start, end) == expected


def test_a_position_is_inside_a_span_between_its_characters() -> None:
    assert [position for position in range(11) if _UNIT.is_inside_protected(position)] == [3, 4, 7]


def test_spans_are_masked_in_their_length() -> None:
    assert _UNIT.masked("X") == "01XXX5XX89"
    assert _UNIT.masked("X", 3, 7) == "XX5X"
    assert _UNIT.segmentable() == "01Xee5de89"
    assert _UNIT.masked("X", 8) == "89"
    assert _UNIT.masked("X", 0, 2) == "01"
    assert _unit("abc").masked("X", 1) == "bc"


def test_a_tag_without_an_opening_begins_before_its_unit() -> None:
    assert Tag(0, 1, "", "</b>").begins_before
    assert not Tag(0, 1, "<b>").begins_before
