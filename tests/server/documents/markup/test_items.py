import pytest

from server.documents.fragment import Atom, Fragment, Wrap
from server.documents.markup.items import Item, Kind, find_units
from server.interface.errors import DocumentTooComplex

OPEN, CLOSE, BREAK, MARK = (Item(kind) for kind in (Kind.OPEN, Kind.CLOSE, Kind.BREAK, Kind.MARK))
SUP = Item(Kind.OPEN, name="sup")
PICTURE = Item(Kind.ATOM)


def _text(text: str) -> Item:
    return Item(Kind.TEXT, text, text)


def _code(text: str) -> Item:
    return Item(Kind.ATOM, text, text)


A, B = _text("a"), _text("b")


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([BREAK, A, BREAK, _text("12"), BREAK, B], [(1, 2, ("a",)), (5, 6, ("b",))]),
        ([A, MARK, B], [(0, 3, ("ab",))]),
        # Tags, pictures and white space around all of it are no part of a unit.
        ([_text(" "), OPEN, OPEN, A, CLOSE, CLOSE, PICTURE], [(3, 4, ("a",))]),
        ([PICTURE, A, PICTURE, B, PICTURE], [(1, 4, ("a", Atom(1), "b"))]),
        ([OPEN, PICTURE, CLOSE, A, B, OPEN, CLOSE], [(3, 5, ("ab",))]),
        ([_code("x"), A, _code("y")], [(0, 3, (Atom(1, "x"), "a", Atom(2, "y")))]),
        # Formatting inside.
        ([A, OPEN, B, CLOSE], [(0, 4, ("a", Wrap(1, ("b",))))]),
        (
            [A, OPEN, B, OPEN, A, CLOSE, PICTURE, CLOSE, B],
            [(0, 9, ("a", Wrap(3, ("b", Wrap(1, ("a",)), Atom(2))), "b"))],
        ),
        # Without a letter or a digit it is an atom with all that it shows.
        ([A, OPEN, _text("* "), OPEN, _code("2"), CLOSE, CLOSE, B], [(0, 8, ("a", Atom(1, "* 2"), "b"))]),
        ([A, SUP, _text("1"), CLOSE], [(0, 4, ("a", Wrap(1, ("1",), name="sup")))]),
        # Letters that are not translated make no unit.
        ([_code("code"), _text(" 1 ")], []),
        # A tag without a partner ends a unit.
        ([A, CLOSE, B], [(0, 1, ("a",)), (2, 3, ("b",))]),
    ],
)  # fmt: skip
def test_units_are_paragraphs_without_the_markup_around_them(
    items: list[Item], expected: list[tuple[int, int, Fragment]]
) -> None:
    assert [(unit.start, unit.end, unit.fragment) for unit in find_units(items)] == expected


def test_white_space_at_the_ends_stays_as_it_is_written() -> None:
    [unit] = find_units([Item(Kind.TEXT, "\n\t a b \n", " a b ")])
    assert (unit.before, unit.fragment, unit.after) == ("\n\t ", ("a b",), " \n")
    [unit] = find_units([_text("  a"), OPEN, B, CLOSE, _text("b\t")])
    assert (unit.before, unit.fragment, unit.after) == ("  ", ("a", Wrap(1, ("b",)), "b"), "\t")
    [unit] = find_units([A, OPEN, _text("b "), CLOSE])
    assert (unit.before, unit.fragment, unit.after) == ("", ("a", Wrap(1, ("b ",))), "")


def test_the_elements_of_a_paragraph_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.documents.markup.items._MAX_PARAGRAPH_NODES", 3)
    allowed = [A, OPEN, B, CLOSE, PICTURE, PICTURE, B]
    assert len(find_units(allowed)) == 1
    with pytest.raises(DocumentTooComplex, match=r"may have 3 elements. The one that begins with 'abba' has more"):
        find_units([*allowed, PICTURE, A])
