from dataclasses import replace

import pytest

from server.documents.fragment import AllFragments, Fragment, Inline, Wrap
from server.documents.input.limits import Density
from server.documents.markup.items import Item, Kind, escaped_texts, rewritten
from server.interface.errors import DocumentTooComplex

_MODULE = "server.documents.markup.item_rewriting."


def _text(text: str) -> Item:
    return Item(Kind.TEXT, text, text)


def _tag(kind: Kind, raw: str) -> Item:
    return Item(kind, raw)


_PAGE = [
    _tag(Kind.BREAK, "<p>"), _text("one"), _tag(Kind.BREAK, "</p><p>"), _text(" two "), _tag(Kind.OPEN, "<b>"),
    _text("three"), _tag(Kind.MARK, "<!-- x -->"), _tag(Kind.CLOSE, "</b>"), _tag(Kind.BREAK, "</p>"), _text("4"),
    _tag(Kind.BREAK, "<hr>"), _text("five & six"),
    Item(Kind.ATOM, "<note>", "", inner=(_text("seven"),), after="</note>"), _text("eight"),
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
    page = [_text("aaaa"), _tag(Kind.OPEN, "<b>"), _text("b"), _tag(Kind.CLOSE, "</b>"), _tag(Kind.ATOM, "<i>")]
    monkeypatch.setattr(f"{_MODULE}_ITEMS", Density(5, 10**9))
    monkeypatch.setattr(f"{_MODULE}_ELEMENTS", Density(2, 10**9))
    assert _rewritten(page, is_held=True)[0]
    with pytest.raises(DocumentTooComplex, match="may have 5 pieces of markup and text"):
        _rewritten([*page, _text("c")], is_held=True)
    monkeypatch.setattr(f"{_MODULE}_ITEMS", Density(50, 10**9))
    with pytest.raises(DocumentTooComplex, match="may have 2 elements in paragraphs"):
        _rewritten([*page, _tag(Kind.ATOM, "<i>")], is_held=True)
