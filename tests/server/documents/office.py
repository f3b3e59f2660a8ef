"""Office documents, built with the libraries that people build them with."""

import io
import struct
import warnings
import zlib

import docx
import pptx
from docx.enum.text import WD_BREAK
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls, qn
from docx.shared import RGBColor
from lxml import etree
from odf import dc, draw, office, style, table, teletype, text
from odf.opendocument import OpenDocumentText
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from tests.server.documents.documents import packed, unpacked


def picture() -> bytes:
    """A PNG of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">2I5B", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


FOOTNOTES = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:footnotes xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
<w:footnote w:id="1"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t xml:space="preserve"> A footnote.</w:t></w:r></w:p>
</w:footnote>
</w:footnotes>"""


def word_document() -> bytes:
    """Headings, styles, lists, a table, a link, fields, a formula, a picture, a comment, header, footer, a text box."""
    document = docx.Document()
    document.core_properties.title = "Title in the metadata"
    document.add_heading("A heading", 1)
    mixed = document.add_paragraph("Good ")
    mixed.add_run("morn").bold = True
    mixed.add_run("ing").bold = True
    mixed.add_run(", how are ")
    coloured = mixed.add_run("you")
    coloured.italic = True
    coloured.font.color.rgb = RGBColor(255, 0, 0)
    mixed.add_run(" today? Größe 😀")
    document.add_paragraph()
    document.add_paragraph("   ")
    document.add_paragraph("First item", style="List Bullet")
    document.add_paragraph("Second item", style="List Number")
    broken = document.add_paragraph("Name:\tvalue")
    broken.add_run().add_break(WD_BREAK.LINE)
    broken.add_run("after the break")
    document.add_paragraph("42 + 17")
    grid = document.add_table(2, 2)
    grid.cell(0, 0).text = "Good evening"
    grid.cell(1, 1).text = "Cell two"
    document.add_picture(io.BytesIO(picture()))
    body = document.element.body
    for xml in (
        '<w:p {}><w:r><w:t xml:space="preserve">See </w:t></w:r><w:hyperlink w:anchor="top"><w:r><w:t>this link</w:t>'
        "</w:r></w:hyperlink><w:r><w:t>, please.</w:t></w:r></w:p>",
        '<w:p {}><w:r><w:t xml:space="preserve">Page </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r>'
        '<w:instrText>PAGE</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>one</w:t></w:r>'
        '<w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t xml:space="preserve"> of many</w:t></w:r></w:p>',
        '<w:p {}><w:bookmarkStart w:id="7" w:name="top"/><w:r><w:t>Note</w:t></w:r><w:proofErr w:type="spellStart"/>'
        '<w:r><w:t>worthy</w:t></w:r><w:bookmarkEnd w:id="7"/><w:r><w:footnoteReference w:id="1"/></w:r>'
        '<w:r><w:t xml:space="preserve"> thing.</w:t></w:r>'
        '<w:del w:id="9"><w:r><w:delText>gone</w:delText></w:r></w:del>'
        '<w:ins w:id="10"><w:r><w:t xml:space="preserve"> And more.</w:t></w:r></w:ins></w:p>',
    ):
        body.insert(len(body) - 1, parse_xml(xml.format(nsdecls("w"))))
    formula = parse_xml(
        f'<w:p {nsdecls("w")} xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><w:r><w:t xml:space='
        '"preserve">Let </w:t></w:r><m:oMath><m:r><m:t>x = y</m:t></m:r></m:oMath><w:r><w:t xml:space="preserve"> be '
        "so.</w:t></w:r></w:p>"
    )
    body.insert(len(body) - 1, formula)
    box = parse_xml(
        f'<w:p {nsdecls("w")} xmlns:v="urn:schemas-microsoft-com:vml"><w:r><w:pict><v:shape><v:textbox><w:txbxContent>'
        "<w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r><w:r>"
        "<w:t>Beside it</w:t></w:r></w:p>"
    )
    body.insert(len(body) - 1, box)
    document.add_comment(mixed.runs, text="A comment", author="An author")
    section = document.sections[0]
    section.header.paragraphs[0].text = "A header"
    section.footer.paragraphs[0].text = "A footer"
    stream = io.BytesIO()
    document.save(stream)
    return _with_footnotes(stream.getvalue())


def _with_footnotes(content: bytes) -> bytes:
    files = unpacked(content)
    files["[Content_Types].xml"] = files["[Content_Types].xml"].replace(
        b"</Types>",
        b'<Override PartName="/word/footnotes.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        b'wordprocessingml.footnotes+xml"/></Types>',
    )
    files["word/_rels/document.xml.rels"] = files["word/_rels/document.xml.rels"].replace(
        b"</Relationships>",
        b'<Relationship Id="rId99" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"'
        b' Target="footnotes.xml"/></Relationships>',
    )
    files["word/footnotes.xml"] = FOOTNOTES.encode()
    return packed(files)


def word_texts(content: bytes) -> list[str]:
    """All text of a Word document, part by part and leaf by leaf."""
    texts = []
    for name, part in unpacked(content).items():
        if name.endswith(".xml") and name.startswith("word/") and "styles" not in name:
            texts += [leaf.text or "" for leaf in etree.fromstring(part).iter(qn("w:t"))]
    return texts


def presentation() -> bytes:
    """A title, bullets on two levels, runs of several styles, a link, a table, notes, a picture and a chart."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "A title"
    frame = slide.placeholders[1].text_frame
    frame.text = "First point"
    second = frame.add_paragraph()
    second.level = 1
    second.add_run().text = "Some "
    bold = second.add_run()
    bold.text, bold.font.bold = "bold words", True
    second.add_run().text = " in a line"
    linked = frame.add_paragraph()
    linked.add_run().text = "Follow "
    link = linked.add_run()
    link.text, link.hyperlink.address = "this link", "http://example.org/"
    frame.add_paragraph()
    broken = frame.add_paragraph()
    broken.text = "above\vbelow"
    grid = slide.shapes.add_table(2, 2, Inches(1), Inches(4), Inches(4), Inches(1)).table
    grid.cell(0, 0).text = "Cell Größe"
    grid.cell(1, 1).text = "17"
    slide.notes_slide.notes_text_frame.text = "Speaker's notes"
    slide.shapes.add_picture(io.BytesIO(picture()), Inches(1), Inches(1))
    data = CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("Sales", (1.0, 2.0))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.PIE, Inches(1), Inches(1), Inches(2), Inches(2), data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Title of a chart"
    stream = io.BytesIO()
    deck.save(stream)
    return stream.getvalue()


def slide_texts(content: bytes) -> list[str]:
    """Texts of the slide, its table, its notes and its chart, in this order."""
    deck = pptx.Presentation(io.BytesIO(content))
    texts = []
    for slide in deck.slides:
        for shape in slide.shapes:
            if shape.has_text_frame:
                texts += [run.text for paragraph in shape.text_frame.paragraphs for run in paragraph.runs]
            if shape.has_table:
                texts += [cell.text for row in shape.table.rows for cell in row.cells]
            if shape.has_chart:
                texts.append(shape.chart.chart_title.text_frame.text)
        texts.append(slide.notes_slide.notes_text_frame.text)
    return texts


def odf_document() -> bytes:
    """Headings, spans, lists, a table, a footnote, a comment, a link, a field, spaces, a picture and a page header."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        document = OpenDocumentText()
    document.meta.addElement(dc.Title(text="Title in the metadata"))
    bold = style.Style(name="Bold", family="text")
    bold.addElement(style.TextProperties(fontweight="bold"))
    document.automaticstyles.addElement(bold)
    document.text.addElement(text.H(outlinelevel=1, text="A heading"))
    mixed = text.P(text="Good ")
    mixed.addElement(text.Span(stylename=bold, text="morning"))
    mixed.addText(", how are you? Größe & 😀 ")
    mixed.addElement(text.A(href="http://example.org/?a=1&b=2", text="A link"))
    mixed.addText(" and page ")
    mixed.addElement(text.PageNumber(text="one"))
    mixed.addText(" of many")
    document.text.addElement(mixed)
    document.text.addElement(text.P())
    noted = text.P(text="Noteworthy")
    note = text.Note(noteclass="footnote")
    note.addElement(text.NoteCitation(text="i"))
    body = text.NoteBody()
    body.addElement(text.P(text="A footnote."))
    note.addElement(body)
    noted.addElement(note)
    noted.addText(" thing.")
    comment = office.Annotation()
    comment.addElement(dc.Creator(text="An author"))
    comment.addElement(text.P(text="A comment"))
    noted.addElement(comment)
    document.text.addElement(noted)
    spaced = text.P()
    teletype.addTextToElement(spaced, "Two  spaces\tafter a tab\nand a break")
    document.text.addElement(spaced)
    items = text.List()
    item = text.ListItem()
    item.addElement(text.P(text="An item"))
    items.addElement(item)
    document.text.addElement(items)
    grid = table.Table(name="Table1")
    grid.addElement(table.TableColumn())
    row = table.TableRow()
    cell = table.TableCell()
    cell.addElement(text.P(text="A cell"))
    row.addElement(cell)
    grid.addElement(row)
    document.text.addElement(grid)
    contents = text.TableOfContent(name="Contents")
    source = text.TableOfContentSource()
    source.addElement(text.IndexTitleTemplate(text="A title of contents"))
    contents.addElement(source)
    document.text.addElement(contents)
    framed = text.P()
    frame = draw.Frame(width="1cm", height="1cm")
    frame.addElement(draw.Image(href=document.addPictureFromString(picture(), "image/png")))
    framed.addElement(frame)
    document.text.addElement(framed)
    layout = style.PageLayout(name="Layout")
    document.automaticstyles.addElement(layout)
    master = style.MasterPage(name="Standard", pagelayoutname=layout)
    header = style.Header()
    header.addElement(text.P(text="A page header"))
    master.addElement(header)
    document.masterstyles.addElement(master)
    stream = io.BytesIO()
    document.write(stream)
    return stream.getvalue()


CHAPTER = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>A title</title>
<style type="text/css">p { color: red }</style><script type="text/javascript">//<![CDATA[
if (a < b) alert("text");
//]]></script></head>
<body><h1 id="h" title='stays'>Chapter&nbsp;one</h1>
<p class="first">Good <b>morning</b>, <i>how</i> are
  you?<br/>A&#246;line<a href="#n1"><sup>1</sup></a>.</p><p/><p> </p>
<!-- a comment --><?stays this?><img src="p.png" alt="stays"/>
<ol><li>An item</li></ol><table><tr><td>A <code>cell</code> &amp; more</td></tr></table>
<svg xmlns="http://www.w3.org/2000/svg"><text>drawn</text></svg>
<aside id="n1"><p>A footnote.</p></aside></body></html>
"""

BOOK = {
    "mimetype": b"application/epub+zip",
    "META-INF/container.xml": b'<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    b'<rootfiles><rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/>'
    b"</rootfiles></container>",
    "OEBPS/content.opf": b'<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
    b'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Stays</dc:title></metadata><manifest>'
    b'<item id="c" href="text/ch%201.xhtml" media-type="application/xhtml+xml"/>'
    b'<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    b'<item id="m" href="missing.xhtml" media-type="application/xhtml+xml"/>'
    b'<item id="s" href="a.css" media-type="text/css"/></manifest>'
    b'<spine toc="n"><itemref idref="c"/></spine></package>',
    "OEBPS/text/ch 1.xhtml": CHAPTER.encode(),
    "OEBPS/toc.ncx": b'<?xml version="1.0"?><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1">'
    b'<docTitle><text>A book</text></docTitle><navMap><navPoint id="a"><navLabel><text>Chapter one</text></navLabel>'
    b'<content src="text/ch%201.xhtml"/></navPoint></navMap></ncx>',
    "OEBPS/a.css": b"p { color: red }",
    "OEBPS/p.png": picture(),
}


def book() -> bytes:
    """A book of one chapter, in both ways of listing the contents."""
    return packed(BOOK)
