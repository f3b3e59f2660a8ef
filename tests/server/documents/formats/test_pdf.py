import io

import docx
import pytest
from docx.text.paragraph import Paragraph as WordParagraph

from server.documents.formats.options import FormatOptions
from server.interface.errors import DocumentTooComplex, InvalidDocument
from tests.server.documents.documents import LOUD, SAME, translated
from tests.server.documents.pdf import line, pdf

PAGE = (
    line("A Large Heading", 220, 780, 24, 2)
    + line("This is the first line of a paragraph that con-", 72, 700)
    + line("tinues here, with Größe and (brackets).", 72, 686)
    + line("An indented remark", 140, 600, 10, 3)
)


def _paragraphs(content: bytes) -> list[WordParagraph]:
    return [paragraph for paragraph in docx.Document(io.BytesIO(content)).paragraphs if paragraph.text]


def test_the_text_of_a_pdf_becomes_a_word_document_with_its_layout() -> None:
    heading, body, remark, last = _paragraphs(translated(pdf(PAGE, line("Second page.", 72, 700)), ".pdf", SAME))
    assert heading.text == "A Large Heading"
    assert heading.runs[0].bold
    assert heading.runs[0].font.size is not None
    assert heading.runs[0].font.size.pt == pytest.approx(24, abs=1)
    assert body.text == "This is the first line of a paragraph that continues here, with Größe and (brackets)."
    assert not body.runs[0].bold
    assert remark.text == "An indented remark"
    assert remark.runs[0].italic
    assert remark.paragraph_format.left_indent is not None
    assert remark.paragraph_format.left_indent.pt == pytest.approx(68, abs=2)
    assert last.text == "Second page."


def test_every_paragraph_of_a_pdf_is_translated_and_pages_stay_apart() -> None:
    content = translated(pdf(PAGE, line("Second page.", 72, 700)), ".pdf", LOUD, options=FormatOptions(language="de"))
    assert [paragraph.text.isupper() for paragraph in _paragraphs(content)] == [True] * 4
    document = docx.Document(io.BytesIO(content))
    assert len(document.sections) == 2
    assert document.sections[0].page_width is not None
    assert document.sections[0].page_width.pt == 595
    assert 'w:lang w:val="de"' in document.element.xml


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no PDF", "the file is not a PDF"),
        (pdf(""), "contains no text, only pictures"),
        (pdf(PAGE)[:400], "cannot be read|contains no text"),
        (pdf(PAGE, encrypted=True), "needs a password"),
        (b"%PDF-1.4\n" + b"<<" * 5000, "cannot be read|contains no text"),
        (pdf(PAGE).replace(b"<< /Type /Catalog /Pages 2 0 R >>", b"1 0 R".ljust(33)), "leads to itself"),
        (pdf(PAGE).replace(b"[3 0 R]", b"2 0 R  ").replace(b"<< /Type /Pages", b"2 0 R %%%%%%%%%"), "leads to itself"),
    ],
)
def test_a_pdf_that_cannot_be_read_is_rejected_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        translated(content, ".pdf", SAME)


def test_a_pdf_with_many_paragraphs_is_read_from_top_to_bottom() -> None:
    rows = [(f"Text {row}-{column}", 20 + 110 * column, 820 - 20 * row) for row in range(40) for column in range(5)]
    content = translated(pdf("".join(line(text, x, y, 8) for text, x, y in reversed(rows))), ".pdf", SAME)
    assert [paragraph.text for paragraph in _paragraphs(content)] == [text for text, _, _ in rows]


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("BT /F1 12 Tf 9 9 Td (a word) Tj ET\n" * 280, "may have 50000 neighbours. Those of page 1 have more"),
        (line("a word " * 30, 9, 9) * 10, "a page of a PDF may have 2000 characters. Page 1 has more"),
        ("q " * 5001, "a page of a PDF may have 5000 saved graphics states in one another. A page has more"),
    ],
)
def test_a_dense_page_of_a_pdf_is_rejected_before_its_layout(
    page: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.documents.formats.pdf._MAX_PAGE_CHARACTERS", 2000)
    with pytest.raises(DocumentTooComplex, match=reason):
        translated(pdf(page), ".pdf", SAME)


@pytest.mark.parametrize("saved", ["q " * 5000, "q Q " * 6000, "q\n" * 5000 + "Q\n" * 6000])
def test_a_page_may_save_many_graphics_states(saved: str) -> None:
    [paragraph] = _paragraphs(translated(pdf(saved + line("One text.", 72, 700)), ".pdf", SAME))
    assert paragraph.text == "One text."
