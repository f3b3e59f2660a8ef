import io
from collections.abc import Sequence

import docx
import pptx
import pytest
from docx.oxml.ns import qn
from lxml import etree
from odf.opendocument import load
from odf.teletype import extractText
from odf.text import P

from server.documents.rewriting import Translate
from tests.server.documents.documents import LOUD, LOUD_PLAIN, SAME, loud, packed, translated, unpacked
from tests.server.documents.office import (
    BOOK,
    CHAPTER,
    book,
    odf_document,
    presentation,
    slide_texts,
    word_document,
    word_texts,
)

CHANGED = {
    ".docx": {f"word/{name}.xml" for name in ("document", "header1", "footer1", "footnotes", "comments")},
    ".pptx": {"ppt/slides/slide1.xml", "ppt/notesSlides/notesSlide1.xml", "ppt/charts/chart1.xml"},
    ".odt": {"content.xml", "styles.xml"},
    ".epub": {"OEBPS/text/ch 1.xhtml", "OEBPS/toc.ncx"},
}
DOCUMENTS = {".docx": word_document, ".pptx": presentation, ".odt": odf_document, ".epub": book}


@pytest.mark.parametrize("extension", DOCUMENTS)
def test_a_document_is_the_same_file_by_file_when_nothing_changes(extension: str) -> None:
    content = DOCUMENTS[extension]()
    result = translated(content, extension, SAME)
    assert unpacked(result) == unpacked(content)
    assert list(unpacked(result)) == list(unpacked(content)), "the order of the files says what the archive is"


@pytest.mark.parametrize("extension", DOCUMENTS)
def test_what_is_no_text_is_the_same_byte_for_byte(extension: str) -> None:
    content = DOCUMENTS[extension]()
    before, after = unpacked(content), unpacked(translated(content, extension, LOUD))
    changed = {name for name in before if before[name] != after[name]}
    assert changed == CHANGED[extension]


@pytest.mark.parametrize("extension", DOCUMENTS)
def test_only_the_text_of_the_xml_changes(extension: str) -> None:
    content = DOCUMENTS[extension]()
    before, after = unpacked(content), unpacked(translated(content, extension, LOUD))
    for name, part in after.items():
        if part != before[name]:
            assert _without_text(part) == _without_text(before[name]), name


def test_all_text_of_a_word_document_is_translated_and_fields_stay() -> None:
    before = word_texts(word_document())
    after = word_texts(translated(word_document(), ".docx", LOUD))
    untouched = {"one"}  # the page number
    expected = [text if text in untouched else text.upper() for text in before]
    # Two runs of one style are one text, which the first of them gets.
    expected[expected.index("MORN")] = "MORNING"
    expected[expected.index("ING")] = ""
    expected[expected.index("NOTE")] = "NOTEWORTHY"
    expected[expected.index("WORTHY")] = ""
    assert after == expected


def test_word_opens_the_result_with_its_styles() -> None:
    result = docx.Document(io.BytesIO(translated(word_document(), ".docx", LOUD)))
    assert result.core_properties.title == "Title in the metadata"
    heading, mixed, empty, blank, bullet, number = result.paragraphs[:6]
    styles = [paragraph.style.name for paragraph in (heading, bullet, number) if paragraph.style is not None]
    assert styles == ["Heading 1", "List Bullet", "List Number"]
    assert heading.text == "A HEADING"
    assert mixed.text == "GOOD MORNING, HOW ARE YOU TODAY? GRÖSSE 😀"
    assert [run.text for run in mixed.runs if run.bold] == ["MORNING", ""]
    assert [run.text for run in mixed.runs if run.italic] == ["YOU"]
    assert (empty.text, blank.text) == ("", "   ")
    assert result.tables[0].cell(1, 1).text == "CELL TWO"
    assert result.paragraphs[6].text == "NAME:\tVALUE\nAFTER THE BREAK"
    [comment] = result.comments
    assert comment.text == "A COMMENT"
    assert len(result.inline_shapes) == 1


def test_without_html_a_paragraph_is_translated_whole_and_takes_the_style_that_most_of_it_had() -> None:
    asked: list[str] = []

    async def remember(texts: Sequence[str]) -> list[str]:
        asked.extend(texts)
        return await loud(texts)

    result = docx.Document(io.BytesIO(translated(word_document(), ".docx", Translate(remember))))
    assert "Good morning, how are you today? Größe 😀" in asked
    mixed = result.paragraphs[1]
    assert mixed.text == "GOOD MORNING, HOW ARE YOU TODAY? GRÖSSE 😀"
    assert not any(run.bold for run in mixed.runs if run.text)
    links = result.element.body.findall(".//" + qn("w:hyperlink"))
    assert ["".join(leaf.text for leaf in link.iter(qn("w:t"))) for link in links] == ["THIS LINK"]
    assert {"See", "this link", ", please."} <= set(asked)


def _reversed_runs(html: str) -> str:
    """The parts of `a<x>b</x>c` in another order, as other languages have them."""
    replacements = {
        'Good <span id="1">morning</span>, how are <span id="2">you</span> today? Größe 😀':
            'How <span id="2">YOU</span> are: <span id="1">morn</span> and <span id="1">ing</span>',
        'See <span id="1">this link</span>, please.': '<span id="1">This link</span> see!',
        'Noteworthy<img id="1"> thing.<span id="2"> And more.</span>':
            '<span id="2">More</span><img id="1"> noteworthy',
        'Let <img id="1"> be so.': "So be <img id=\"1\">",
    }  # fmt: skip
    return replacements.get(html, html)


def test_styles_links_and_notes_go_where_their_words_go() -> None:
    async def reorder(texts: Sequence[str]) -> list[str]:
        return [_reversed_runs(text) for text in texts]

    async def same(texts: Sequence[str]) -> list[str]:
        return list(texts)

    content = translated(word_document(), ".docx", Translate(same, reorder))
    result = docx.Document(io.BytesIO(content))
    mixed = result.paragraphs[1]
    assert mixed.text == "How YOU are: morn and ing"
    assert [run.text for run in mixed.runs if run.bold] == ["morn", "ing"]
    assert [run.text for run in mixed.runs if run.italic] == ["YOU"]
    texts = {paragraph.text for paragraph in result.paragraphs}
    assert "This link see!" in texts
    [noted] = [p for p in result.element.body if p.find(".//" + qn("w:footnoteReference")) is not None]
    assert "".join(t.text or "" for t in noted.iter(qn("w:t"))) == "More noteworthy"
    tags = [
        etree.QName(each).localname
        for each in noted.iter()
        if etree.QName(each).localname in ("footnoteReference", "ins", "bookmarkStart", "del")
    ]
    assert sorted(tags) == ["bookmarkStart", "del", "footnoteReference", "ins"]
    assert tags.index("ins") < tags.index("footnoteReference")


def test_a_paragraph_whose_mark_up_is_lost_is_translated_as_text() -> None:
    async def without_tags(texts: Sequence[str]) -> list[str]:
        return ["lost" for _ in texts]

    result = docx.Document(io.BytesIO(translated(word_document(), ".docx", Translate(loud, without_tags))))
    assert result.paragraphs[1].text == "GOOD MORNING, HOW ARE YOU TODAY? GRÖSSE 😀"


def test_all_text_of_a_presentation_is_translated_with_its_styles_and_links() -> None:
    result = translated(presentation(), ".pptx", LOUD)
    assert slide_texts(result) == [text.upper() for text in slide_texts(presentation())]
    slide = pptx.Presentation(io.BytesIO(result)).slides[0]
    second, linked = slide.placeholders[1].text_frame.paragraphs[1:3]
    assert [run.font.bold for run in second.runs] == [None, True, None]
    assert second.level == 1
    assert linked.runs[1].hyperlink.address == "http://example.org/"
    plain = pptx.Presentation(io.BytesIO(translated(presentation(), ".pptx", LOUD_PLAIN))).slides[0]
    linked = plain.placeholders[1].text_frame.paragraphs[2]
    assert [run.text for run in linked.runs] == ["FOLLOW ", "THIS LINK"]
    assert linked.runs[1].hyperlink.address == "http://example.org/"


def test_all_text_of_an_open_document_is_translated() -> None:
    before = unpacked(odf_document())["content.xml"].decode()
    after = unpacked(translated(odf_document(), ".odt", LOUD))["content.xml"].decode()
    for text in (
        ">A HEADING<", ">GOOD <", ">MORNING<", ">, HOW ARE YOU? GRÖSSE &amp; 😀 <",
        ">A LINK<", "> AND PAGE <", "> OF MANY<",
        ">NOTEWORTHY<", ">A FOOTNOTE.<", "> THING.<", ">A COMMENT<", ">AN ITEM<", ">A CELL<", ">TWO ", "SPACES<",
        ">AFTER A TAB<", ">AND A BREAK<", ">A TITLE OF CONTENTS<",
    ):  # fmt: skip
        assert text in after, text
    for untouched in (">one<", ">i<", ">An author<", "http://example.org/?a=1&amp;b=2"):
        assert untouched in before
        assert untouched in after
    assert ">A PAGE HEADER<" in unpacked(translated(odf_document(), ".odt", LOUD))["styles.xml"].decode()
    result = load(io.BytesIO(translated(odf_document(), ".odt", LOUD)))
    assert "GOOD MORNING, HOW ARE YOU?" in extractText(result.getElementsByType(P)[0])


def test_pages_of_books_may_have_entities_of_html_with_any_document_type() -> None:
    name = "OEBPS/text/ch 1.xhtml"
    page = CHAPTER.replace(CHAPTER.split("\n")[1], "<!DOCTYPE html>").encode()
    after = unpacked(translated(packed(BOOK | {name: page}), ".epub", LOUD))
    assert b"<!DOCTYPE html>" in after[name]
    assert "CHAPTER&nbsp;ONE" in after[name].decode()


def test_all_text_of_a_book_is_translated() -> None:
    after = unpacked(translated(book(), ".epub", LOUD))
    chapter = after["OEBPS/text/ch 1.xhtml"].decode()
    expected = CHAPTER
    for text in (
        "A title", "Good <b>morning</b>, <i>how</i> are\n  you?", "An item", "A footnote.",
    ):  # fmt: skip
        expected = expected.replace(text, _shouted(text))
    expected = (
        expected.replace("Chapter&nbsp;one", "CHAPTER&nbsp;ONE")
        .replace(" ARE\n  YOU?", " ARE YOU?")
        .replace("A&#246;line", "AÖLINE")
        .replace("A <code>cell</code> &amp; more", "A <code>cell</code> &amp; MORE")
    )
    assert chapter == expected
    assert b"<text>A BOOK</text>" in after["OEBPS/toc.ncx"]
    assert b"<text>CHAPTER ONE</text>" in after["OEBPS/toc.ncx"]


def test_a_page_of_a_book_need_not_be_well_formed() -> None:
    package = BOOK["OEBPS/content.opf"].replace(b"application/xhtml+xml", b"text/html")
    page = b"<html lang=en><p>An item<br>of it<p>&copy; A footnote"
    name = "OEBPS/text/ch 1.xhtml"
    after = unpacked(translated(packed(BOOK | {"OEBPS/content.opf": package, name: page}), ".epub", LOUD))
    assert after[name] == b"<html lang=en><p>AN ITEM<br>OF IT<p>&copy; A FOOTNOTE"


def _shouted(html: str) -> str:
    return "".join(
        part if part.startswith("<") else part.upper()
        for part in html.replace("<", "\0<").replace(">", ">\0").split("\0")
    )


def _without_text(content: bytes) -> list[object]:
    """Every element with its attributes, in order; a mark for each comment."""
    root = etree.fromstring(content, etree.XMLParser(recover=True, resolve_entities=False))
    return [
        (
            element.tag,
            sorted((name, value) for name, value in element.attrib.items() if not str(name).endswith("}space")),
        )
        if isinstance(element.tag, str)
        else "mark"
        for element in root.iter(etree.Element, etree.Comment, etree.PI)
    ]
