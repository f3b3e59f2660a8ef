"""Parts of runs of Office paragraphs: readings above a text, raised and lowered characters."""

from collections.abc import Sequence

import pytest

from server.documents.rewriting import Translate
from tests.faults.documents import slides, word, workbook
from tests.server.documents.documents import LOUD, SAME, packed, translated, unpacked

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


def test_a_choice_of_a_list_stays_and_a_translation_is_not_bound_to_other_data() -> None:
    def control(properties: str, content: str) -> str:
        return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"

    def run(text: str) -> str:
        return f"<w:r><w:t>{text}</w:t></w:r>"

    def paragraph(content: str) -> str:
        return f"<w:p>{content}</w:p>"

    choice, binding = '<w:dropDownList><w:listItem w:value="open"/></w:dropDownList>', '<w:dataBinding w:xpath="/a"/>'
    body = (
        paragraph(run("It is now") + control(choice, run("open")))
        + control(choice, paragraph(run("open")))
        + control(binding, paragraph(run("12")))
        + control(binding, paragraph(run("a title")))
        + paragraph(control(binding, run("a name")))
    )
    document = unpacked(translated(word(body), ".docx", LOUD))["word/document.xml"].decode()
    assert document.count("<w:t>open</w:t>") == 2
    assert document.count("dataBinding") == 1
    assert all(f"<w:t>{text}</w:t>" in document for text in ("IT IS NOW", "12", "A TITLE", "A NAME"))


WORD = "<w:p><w:r><w:t>m</w:t></w:r><w:r><w:rPr>{}</w:rPr><w:t>2</w:t></w:r><w:r><w:t> wide</w:t></w:r></w:p>"
SLIDE = "<a:p><a:r><a:t>m</a:t></a:r><a:r><a:rPr {}/><a:t>2</a:t></a:r><a:r><a:t> wide</a:t></a:r></a:p>"
CELL = "<si><r><t>m</t></r><r><rPr>{}</rPr><t>2</t></r><r><t> wide</t></r></si>"


@pytest.mark.parametrize(
    ("extension", "document", "name"),
    [
        (".docx", word(WORD.format('<w:vertAlign w:val="superscript"/>')), "sup"),
        (".docx", word(WORD.format('<w:b/><w:vertAlign w:val="baseline"/>')), "span"),
        (".pptx", slides(SLIDE.format('baseline="-25%"')), "sub"),
        (".xlsx", workbook(CELL.format('<vertAlign val="superscript"/>')), "sup"),
    ],
)
def test_raised_and_lowered_runs_have_the_names_of_html(extension: str, document: bytes, name: str) -> None:
    asked: list[str] = []

    async def remember(texts: Sequence[str]) -> list[str]:
        asked.extend(texts)
        return list(texts)

    translated(document, extension, Translate(remember, remember))
    assert asked == [f'm<{name} id="1">2</{name}> wide']


TYPES = "application/vnd.openxmlformats-officedocument."
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
PARAGRAPH = f'<x xmlns:a="{DRAWING}"><a:p><a:r><a:t>a dog</a:t></a:r></a:p></x>'
PRESENTATION = "http://schemas.openxmlformats.org/presentationml/2006/main"
COMMENT = f'<p:cmLst xmlns:p="{PRESENTATION}"><p:cm><p:text>a dog</p:text></p:cm></p:cmLst>'


@pytest.mark.parametrize(
    ("extension", "document"), [(".docx", word("")), (".pptx", slides("")), (".xlsx", workbook(""))]
)
@pytest.mark.parametrize(
    "kind",
    [
        f"{TYPES}drawingml.chart+xml",
        f"{TYPES}drawingml.diagramData+xml",
        "application/vnd.ms-office.drawingml.diagramDrawing+xml",
    ],
)
def test_charts_and_diagrams_of_all_office_documents_are_translated(extension: str, document: bytes, kind: str) -> None:
    assert _part(document, extension, kind, PARAGRAPH) == PARAGRAPH.replace("a dog", "A DOG")


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        (f"{TYPES}presentationml.comments+xml", COMMENT),
        ("application/vnd.ms-powerpoint.comments+xml", PARAGRAPH),
    ],
)
def test_comments_of_a_presentation_are_translated(kind: str, part: str) -> None:
    assert _part(slides(""), ".pptx", kind, part) == part.replace("a dog", "A DOG")


def _part(document: bytes, extension: str, kind: str, content: str) -> str:
    """Return the translation of a part of this type in a document."""
    files = unpacked(document)
    files["part.xml"] = content.encode()
    override = f'<Override PartName="/part.xml" ContentType="{kind}"/></Types>'
    files["[Content_Types].xml"] = files["[Content_Types].xml"].replace(b"</Types>", override.encode())
    return unpacked(translated(packed(files), extension, LOUD))["part.xml"].decode()
