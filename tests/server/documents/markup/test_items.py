from dataclasses import replace

import pytest

from server.documents.fragment import AllFragments, Atom, Fragment, Inline, Wrap
from server.documents.input.limits import Density
from server.documents.markup.items import Item, Kind, escaped_texts, find_units, inner_items, rewritten
from server.interface.errors import DocumentTooComplex

OPEN, CLOSE, BREAK, MARK = (Item(kind) for kind in (Kind.OPEN, Kind.CLOSE, Kind.BREAK, Kind.MARK))
HARD = Item(Kind.OPEN, is_soft=False)
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
        ([], []),
        ([BREAK, A, BREAK, _text("12"), BREAK, B], [(1, 2, ("a",)), (5, 6, ("b",))]),
        ([A, MARK, B], [(0, 3, ("ab",))]),
        # Tags, pictures and white space around all of it are no part of a unit.
        ([OPEN, A, B, CLOSE], [(1, 3, ("ab",))]),
        ([_text(" "), OPEN, OPEN, A, CLOSE, CLOSE, PICTURE], [(3, 4, ("a",))]),
        ([PICTURE, A, PICTURE, B, PICTURE], [(1, 4, ("a", Atom(1), "b"))]),
        ([OPEN, PICTURE, CLOSE, A, B, OPEN, CLOSE], [(3, 5, ("ab",))]),
        ([_code("x"), A, _code("y")], [(0, 3, (Atom(1, "x"), "a", Atom(2, "y")))]),
        # Formatting inside.
        ([A, OPEN, B, CLOSE], [(0, 4, ("a", Wrap(1, ("b",))))]),
        ([A, HARD, B, CLOSE], [(0, 4, ("a", Wrap(1, ("b",), is_soft=False)))]),
        (
            [A, OPEN, B, OPEN, A, CLOSE, PICTURE, CLOSE, B],
            [(0, 9, ("a", Wrap(3, ("b", Wrap(1, ("a",)), Atom(2))), "b"))],
        ),
        # Without a letter or a digit it is an atom with all that it shows.
        ([A, OPEN, _text("* "), OPEN, _code("2"), CLOSE, CLOSE, B], [(0, 8, ("a", Atom(1, "* 2"), "b"))]),
        ([A, SUP, _text("1"), CLOSE], [(0, 4, ("a", Wrap(1, ("1",), name="sup")))]),
        ([OPEN, _text("1"), CLOSE, _text("2")], []),
        ([A, OPEN, _code("2"), CLOSE, B, PICTURE, A], [(0, 7, ("a", Atom(1, "2"), "b", Atom(2), "a"))]),
        # Letters that are not translated make no unit.
        ([_code("code"), _text(" 1 ")], []),
        ([OPEN, _code("code"), CLOSE, _text(" 1")], []),
        # A tag without a partner ends a unit.
        ([A, CLOSE, B], [(0, 1, ("a",)), (2, 3, ("b",))]),
        ([A, OPEN, B, OPEN, A, CLOSE], [(0, 1, ("a",)), (2, 6, ("b", Wrap(1, ("a",))))]),
    ],
)  # fmt: skip
def test_units_are_paragraphs_without_the_markup_around_them(
    items: list[Item], expected: list[tuple[int, int, Fragment]]
) -> None:
    assert [(unit.start, unit.end, unit.fragment) for unit in find_units(items)] == expected


def test_places_are_those_of_the_tags_and_of_the_first_and_last_item_of_an_atom() -> None:
    [unit] = find_units([BREAK, A, OPEN, B, CLOSE, PICTURE, OPEN, _code("7"), CLOSE, B])
    assert unit.fragment == ("a", Wrap(1, ("b",)), Atom(2), Atom(3, "7"), "b")
    assert unit.places == {1: (2, 4), 2: (5, 5), 3: (6, 8)}
    assert len(unit.items) == 9


def test_white_space_at_the_ends_stays_as_it_is_written() -> None:
    [unit] = find_units([Item(Kind.TEXT, "\n\t a b \n", " a b ")])
    assert (unit.before, unit.fragment, unit.after) == ("\n\t ", ("a b",), " \n")
    [unit] = find_units([_text("  a"), OPEN, B, CLOSE, _text("b\t")])
    assert (unit.before, unit.fragment, unit.after) == ("  ", ("a", Wrap(1, ("b",)), "b"), "\t")
    [unit] = find_units([A, OPEN, _text("b "), CLOSE])
    assert (unit.before, unit.fragment, unit.after) == ("", ("a", Wrap(1, ("b ",))), "")


def test_items_inside_items_are_found_in_their_order() -> None:
    note = Item(Kind.ATOM, inner=(A, BREAK))
    assert list(inner_items([A, note, B, Item(Kind.BREAK, inner=(B,))])) == [(A, BREAK), (B,)]


def test_the_elements_of_a_paragraph_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.documents.markup.items._MAX_PARAGRAPH_NODES", 3)
    allowed = [A, OPEN, B, CLOSE, PICTURE, PICTURE, B]
    assert len(find_units(allowed)) == 1
    with pytest.raises(DocumentTooComplex, match=r"may have 3 elements. The one that begins with 'abba' has more"):
        find_units([*allowed, PICTURE, A])


_MODULE = "server.documents.markup.items."


def _word(text: str) -> Item:
    return Item(Kind.TEXT, text, text)


def _tag(kind: Kind, raw: str) -> Item:
    return Item(kind, raw)


_PAGE = [
    _tag(Kind.BREAK, "<p>"), _word("one"), _tag(Kind.BREAK, "</p><p>"), _word(" two "), _tag(Kind.OPEN, "<b>"),
    _word("three"), _tag(Kind.MARK, "<!-- x -->"), _tag(Kind.CLOSE, "</b>"), _tag(Kind.BREAK, "</p>"), _word("4"),
    _tag(Kind.BREAK, "<hr>"), _word("five & six"),
    Item(Kind.ATOM, "<note>", "", inner=(_word("seven"),), after="</note>"), _word("eight"),
]  # fmt: skip


def _upper(fragment: Fragment) -> Fragment:
    def of(node: Inline) -> Inline:
        if isinstance(node, Wrap):
            return replace(node, children=_upper(node.children))
        return node.upper() if isinstance(node, str) else node

    return tuple(map(of, fragment))


def _rewritten(items: list[Item], *, is_held: bool, changes: bool = True) -> tuple[str, list[list[Fragment]]]:
    steps = rewritten(items, escaped_texts, is_held=is_held)
    windows: list[list[Fragment]] = []
    try:
        window = next(steps)
        while True:
            windows.append(window)
            window = steps.send([_upper(fragment) if changes else fragment for fragment in window])
    except StopIteration as end:
        return end.value, windows


def test_a_page_without_changes_is_written_as_it_was_read() -> None:
    assert _rewritten(_PAGE, is_held=True, changes=False)[0] == (
        "<p>one</p><p> two <b>three<!-- x --></b></p>4<hr>five & six<note>seven</note>eight"
    )


def test_changed_texts_are_written_as_their_source_and_marks_come_first() -> None:
    expected = "<p>ONE</p><p><!-- x --> TWO <b>THREE</b></p>4<hr>FIVE & SIX<note>SEVEN</note>EIGHT"
    held, windows = _rewritten(_PAGE, is_held=True)
    assert held == expected
    assert len(windows) == 1
    assert isinstance(windows[0], AllFragments)
    assert len(windows[0]) == 4


def test_windows_end_at_breaks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_MODULE}_WINDOW_ITEMS", 2)
    in_windows, windows = _rewritten(_PAGE, is_held=False)
    assert in_windows == _rewritten(_PAGE, is_held=True)[0]
    assert [len(window) for window in windows] == [1, 1, 2]


def test_pieces_and_elements_are_limited_by_the_length_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    page = [
        _word("aaaa"),
        _tag(Kind.OPEN, "<b>"),
        _word("b"),
        _tag(Kind.CLOSE, "</b>"),
        _tag(Kind.ATOM, "<i>"),
    ]
    monkeypatch.setattr(f"{_MODULE}_ITEMS", Density(5, 10**9))
    monkeypatch.setattr(f"{_MODULE}_ELEMENTS", Density(2, 10**9))
    assert _rewritten(page, is_held=True)[0]
    with pytest.raises(DocumentTooComplex, match="may have 5 pieces of markup and text"):
        _rewritten([*page, _word("c")], is_held=True)
    monkeypatch.setattr(f"{_MODULE}_ITEMS", Density(50, 10**9))
    with pytest.raises(DocumentTooComplex, match="may have 2 elements in paragraphs"):
        _rewritten([*page, _tag(Kind.ATOM, "<i>")], is_held=True)
