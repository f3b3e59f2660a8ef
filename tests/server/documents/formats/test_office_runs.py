"""Parts of runs of Office paragraphs: readings above a text, raised and lowered characters."""

from collections.abc import Sequence

import pytest

from server.documents.rewriting import Translate
from tests.faults.documents import slides, word, workbook
from tests.server.documents.documents import LOUD, SAME, translated, unpacked

RUBY = (
    "<w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>reading</w:t></w:r></w:rt><w:rubyBase><w:r><w:rPr><w:b/></w:rPr>"
    "<w:t>old {}</w:t></w:r></w:rubyBase></w:ruby></w:r>"
)


def test_the_base_of_a_ruby_is_text_and_its_reading_goes_with_a_change() -> None:
    body = f"<w:p>{RUBY.format('house')}<w:r><w:t> here</w:t></w:r></w:p><w:p>{RUBY.format('12')}</w:p>"
    content = word(body)
    assert unpacked(translated(content, ".docx", SAME)) == unpacked(content)
    document = unpacked(translated(content, ".docx", LOUD))["word/document.xml"].decode()
    assert "OLD HOUSE</w:t>" in document
    assert " HERE</w:t>" in document
    assert "reading" not in document


WORD = "<w:p><w:r><w:t>m</w:t></w:r><w:r><w:rPr>{}</w:rPr><w:t>2</w:t></w:r><w:r><w:t> wide</w:t></w:r></w:p>"
SLIDE = "<a:p><a:r><a:t>m</a:t></a:r><a:r><a:rPr {}/><a:t>2</a:t></a:r><a:r><a:t> wide</a:t></a:r></a:p>"
CELL = "<si><r><t>m</t></r><r><rPr>{}</rPr><t>2</t></r><r><t> wide</t></r></si>"


@pytest.mark.parametrize(
    ("extension", "document", "name"),
    [
        (".docx", word(WORD.format('<w:vertAlign w:val="superscript"/>')), "sup"),
        (".docx", word(WORD.format('<w:vertAlign w:val="subscript"/>')), "sub"),
        (".docx", word(WORD.format('<w:b/><w:vertAlign w:val="baseline"/>')), "span"),
        (".pptx", slides(SLIDE.format('baseline="30000"')), "sup"),
        (".pptx", slides(SLIDE.format('baseline="-25%"')), "sub"),
        (".pptx", slides(SLIDE.format('baseline="0"')), "span"),
        (".xlsx", workbook(CELL.format('<vertAlign val="superscript"/>')), "sup"),
        (".xlsx", workbook(CELL.format("<b/>")), "span"),
    ],
)
def test_raised_and_lowered_runs_have_the_names_of_html(extension: str, document: bytes, name: str) -> None:
    asked: list[str] = []

    async def remember(texts: Sequence[str]) -> list[str]:
        asked.extend(texts)
        return list(texts)

    translated(document, extension, Translate(remember, remember))
    assert asked == [f'm<{name} id="1">2</{name}> wide']
