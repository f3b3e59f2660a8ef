"""Limits on the work that a page makes for a browser's parser, each at the limit and behind it."""

import pytest

from server.documents.markup.page_cost import check_page_cost
from server.interface.errors import DocumentTooComplex

_MODULE = "server.documents.markup.page_cost."


def _is_taken(page: str) -> bool:
    try:
        check_page_cost(page)
    except DocumentTooComplex:
        return False
    return True


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>a<p>b<br>", True),
        ("<p>a<p>b<br><div>", False),
        ("<p>a</p><p>b</p><br></br>", False),
        ("<p>a</p><div></div><ul></ul>x</p>", True),
        ("<!-- <p><p><p><p><p> --><p>", True),
        ("<script><p><p><p><p></script><p>", True),
        ("<p title='<p><p><p><p>'>", True),
        ("<span><span><span><span><span>", True),
        ("<P><P><P><P>", False),
    ],
)
def test_blocks_and_line_breaks_are_limited(page: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_MODULE}_FREE_BLOCKS", 3)
    monkeypatch.setattr(f"{_MODULE}_CHARACTERS_PER_BLOCK", 10**9)
    assert _is_taken(page) is expected


def test_a_long_page_may_have_more_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_MODULE}_FREE_BLOCKS", 1)
    assert _is_taken("<p>" + "x" * 17 + "<p>")
    assert not _is_taken("<p>" + "x" * 12 + "<p>")


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<select><option>a<option>b</select>", True),
        ("<select>\n<option>a<option>b\n<option>c</select>", False),
        ("<select><option>a<option>b</select><select><option>a<option>b</select>", True),
        ("<option>a<option>b<option>c", True),
        ("<select><option>a</select><option>b<option>c", True),
    ],
)
def test_options_of_a_list_are_limited(page: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_MODULE}_MAX_OPTIONS", 2)
    assert _is_taken(page) is expected
    if not expected:
        with pytest.raises(DocumentTooComplex, match=r"may have 2 options. The one that ends in line 3"):
            check_page_cost(page)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p><b>x</b></p><p>y", True),
        ("<p><b>x</p><p>y", False),  # the second paragraph is bold as well
        ("<p><b>x<p>y", False),
        ("<p><b>x</p></b><p>y", True),
        ("<b><p>x</p><p>y</p></b>", True),
        ("<div><b><p>x</p><p>y</p></b></div><p>", True),
        ("<div><b><p>x</p><p>y</p></div><p>", False),
        ("<p><a href=1>x<a href=2>y</a></p><p>", True),
        ("<p><span>x</p><p>y", True),
    ],
)
def test_formatting_that_paragraphs_repeat_is_limited(
    page: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{_MODULE}_FREE_COPIES", 0)
    monkeypatch.setattr(f"{_MODULE}_COPIES_PER_ELEMENT", 0)
    assert _is_taken(page) is expected


def test_a_tag_allows_four_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_MODULE}_FREE_COPIES", 0)
    carried = "<p>" + "".join(f"<b id={number}>" for number in range(5)) + "</p>"  # seven tags
    assert _is_taken(carried + "<p>" * 5)  # 25 copies, 48 allowed
    assert not _is_taken(carried + "<p>" * 40)  # 200 copies, 188 allowed


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<b><i>", True),
        ("<b><i><u>", False),
        ("<b><b><b><b>", False),
        ("<b><i></i><u>", True),
        ("<b><i></b><u>", True),
        ("<a><a><a><a>", True),
    ],
)
def test_open_formatting_is_limited(page: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_MODULE}_MAX_OPEN", 2)
    assert _is_taken(page) is expected


def test_equal_formatting_counts_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{_MODULE}_MAX_OPEN", 3)
    assert _is_taken("<b>" * 50)
    assert _is_taken("<b class=x>" * 50)
    assert not _is_taken("<b>" * 3 + "<b class=x>")


def test_attributes_of_a_tag_are_limited() -> None:
    def tag(number: int) -> str:
        return "x\n<td " + " ".join(f'x{index}="1 2 3"' for index in range(number)) + ">"

    assert _is_taken(tag(500))
    with pytest.raises(DocumentTooComplex, match=r"may have 500 attributes. The one in line 2 has 501"):
        check_page_cost(tag(501))
