"""Documents with much markup for their size, or odd texts: read in little time, or rejected."""

import json
from collections.abc import Sequence

import pytest

from server.documents.input.limits import Density
from server.documents.rewriting import Translate
from server.interface.errors import DocumentTooComplex
from tests.faults.documents import book as single_chapter
from tests.server.documents.documents import SAME, read_soon, translated


@pytest.mark.parametrize("mark_up", ["<b>x</b> ", "<b>1</b> ", "<b></b> ", "<img> ", "x<!-- --> "])
def test_a_paragraph_full_of_tags_is_read_soon(mark_up: str) -> None:
    read_soon(f"<p>x {mark_up * 10_000} x", ".html")


@pytest.mark.parametrize("extension", [".html", ".epub"])
def test_more_tags_than_the_bytes_of_a_page_are_worth_are_rejected(
    extension: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.documents.markup.items._ELEMENTS", Density(200, 40))

    def page(markup: str) -> bytes:
        paragraphs = f"<p>x {markup * 100} x</p>" * 10
        return paragraphs.encode() if extension == ".html" else single_chapter(paragraphs)

    with pytest.raises(DocumentTooComplex, match=r"may have 2\d\d elements in paragraphs"):
        translated(page("<b>x</b> "), extension, SAME)
    translated(page('<span style="left:12px;top:3px">x</span>'), extension, SAME)


def test_more_markup_than_the_characters_of_a_markdown_file_are_worth_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("server.documents.formats.md._FREE_MARKS", 200)
    with pytest.raises(DocumentTooComplex, match="of 8000 characters may have 600 of"):
        translated(b"![a] b\n\n" * 1000, ".md", SAME)
    translated(b"```\n" + b"*[a] b\n\n" * 1000 + b"```\n", ".md", SAME)
    monkeypatch.setattr("server.documents.formats.md._MAX_BLOCK_TOKENS", 3000)
    with pytest.raises(DocumentTooComplex, match="1000 paragraphs or cells of tables"):
        translated(b"|a|\n|-|\n" + b"|b|\n" * 1000, ".md", SAME)


@pytest.mark.parametrize(
    ("extension", "mark"),
    [(".txt", "<b>"), (".json", "{a}"), (".txt", "\u2603\U0001f600"), (".json", '""'), (".txt", "a. a.")],
)
def test_more_marks_in_texts_than_their_characters_are_worth_are_rejected(
    extension: str, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.documents.steps._FREE_MARKS", 200)
    dense, sparse = f"{mark} dog " * 1000, f"{mark} all dogs jump over cows, " * 1000
    as_file = json.dumps if extension == ".json" else str
    with pytest.raises(DocumentTooComplex, match=r"may have (?:[7-9]|1[01])\d\d symbols.* have 2000"):
        translated(as_file(dense).encode(), extension, SAME)
    translated(as_file(sparse).encode(), extension, SAME)


def test_a_row_of_more_cells_than_a_spreadsheet_has_is_rejected() -> None:
    with pytest.raises(DocumentTooComplex, match="a table may have 16384 columns"):
        translated(b"x" + b",a" * 20_000 + b"\n", ".csv", SAME)


def test_equal_texts_of_a_document_are_translated_once() -> None:
    received: list[str] = []

    async def count(texts: Sequence[str]) -> Sequence[str]:
        received.extend(texts)
        return [text.upper() for text in texts]

    assert translated(b"Yes,No\n" * 300 + b" Yes,no\n", ".csv", Translate(count)) == b"YES,NO\n" * 300 + b" YES,NO\n"
    assert sorted(received) == ["No", "Yes", "Yes", "no"]
