"""PDF: its text as a Word document, with pages, paragraphs, indents, alignment, sizes, bold and italic type.

Pictures, drawings, colours, tables as such, links and forms are not kept. pdfminer.six finds lines and paragraphs.
"""

import html
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import BinaryIO

from pdfminer.converter import PDFPageAggregator
from pdfminer.layout import (
    LAParams,
    LTChar,
    LTPage,
    LTTextBox,
    LTTextBoxHorizontal,
    LTTextBoxVertical,
    LTTextGroup,
    LTTextLine,
    LTTextLineHorizontal,
)
from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError, PDFPasswordIncorrect
from pdfminer.pdffont import PDFFont
from pdfminer.pdfinterp import PDFGraphicState, PDFPageInterpreter, PDFResourceManager
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser
from pdfminer.pdftypes import PDFObjRef
from pdfminer.utils import Matrix, Plane, apply_matrix_rect

from server.documents.fragment import AllFragments, Fragment, Inline, Rewrite, Wrap, has_words, joined
from server.documents.input.limits import FileLimits
from server.documents.input.safe_xml import fit_for_xml
from server.interface.errors import DocumentTooComplex, InvalidDocument, KvasirError

_MAX_PAGES = 2000
_MAX_PAGE_CHARACTERS = 60_000  # some 20 us each
# The library takes quadratic time for lines of one paragraph, and cubic time to order paragraphs.
_MAX_PAGE_NEIGHBOURS = 50_000  # pairs of lines; a line has some five
_MAX_REFERENCES = 16  # that lead to an object one after the other
# Some 0.4 kB and 15 us each. ISO 32000-1, annex C, has a limit of 28.
_MAX_SAVED_STATES = 5000
_MAX_GROUPED_PARAGRAPHS = 150  # more are read from top to bottom


class _TextDocument(PDFDocument):
    """A document whose references end: the library follows one that leads to itself without an end."""

    def getobj(self, objid: int) -> object:
        """Return an object. Raises `InvalidDocument` if it is a reference to a reference, and so on."""
        found = super().getobj(objid)
        for _ in range(_MAX_REFERENCES):
            if not isinstance(found, PDFObjRef):
                return found
            found = super().getobj(found.objid)
        raise InvalidDocument(f"object {objid} of the PDF is a reference that leads to itself")


class _TextPage(LTPage):
    """A page whose layout takes time linear in its lines."""

    def group_textlines(self, laparams: LAParams, lines: Iterable[LTTextLine]) -> Iterator[LTTextBox]:
        """Yield paragraphs: lines that are neighbours. Raises `DocumentTooComplex` for too many in one place."""
        lines = list(lines)
        plane = Plane[LTTextLine](self.bbox)
        plane.extend(lines)
        members_of = {line: [line] for line in lines}
        num_neighbours = 0
        for line in lines:
            neighbours = line.find_neighbors(plane, laparams.line_margin)
            num_neighbours += len(neighbours)
            if num_neighbours > _MAX_PAGE_NEIGHBOURS:
                raise DocumentTooComplex(
                    f"lines of a page of a PDF may have {_MAX_PAGE_NEIGHBOURS} neighbours. Those of page {self.pageid} "
                    "have more: they lie on each other"
                )
            for neighbour in neighbours:
                small, large = sorted((members_of[line], members_of[neighbour]), key=len)
                if small is not large:
                    large += small
                    members_of.update(dict.fromkeys(small, large))
        position = {line: index for index, line in enumerate(lines)}
        for members in {id(each): each for each in members_of.values()}.values():
            box: LTTextBox = (
                LTTextBoxHorizontal() if isinstance(members[0], LTTextLineHorizontal) else LTTextBoxVertical()
            )
            for line in sorted(members, key=lambda line: position[line]):
                box.add(line)
            if not box.is_empty():
                yield box

    def group_textboxes(self, laparams: LAParams, boxes: Sequence[LTTextBox]) -> list[LTTextGroup]:
        """Return the paragraphs in the order of reading, as groups or one by one."""
        if len(boxes) <= _MAX_GROUPED_PARAGRAPHS:
            return super().group_textboxes(laparams, boxes)
        return sorted(boxes, key=lambda box: (-box.y1, box.x0))  # type: ignore[arg-type]


class _TextPages(PDFPageAggregator):
    """Collects the characters of one page after the other."""

    def __init__(self, resources: PDFResourceManager) -> None:
        super().__init__(resources, laparams=LAParams())
        self._num_characters = 0

    def begin_page(self, page: PDFPage, ctm: Matrix) -> None:
        """Begin to count."""
        self._num_characters = 0
        x0, y0, x1, y1 = apply_matrix_rect(ctm, page.mediabox)
        self.cur_item = _TextPage(self.pageno, (0, 0, abs(x0 - x1), abs(y0 - y1)))

    def render_char(
        self,
        matrix: Matrix,
        font: PDFFont,
        fontsize: float,
        scaling: float,
        rise: float,
        cid: int,
        ncs: object,
        graphicstate: PDFGraphicState,
    ) -> float:
        """Add a character; raises `DocumentTooComplex` for too many on one page."""
        self._num_characters += 1
        if self._num_characters > _MAX_PAGE_CHARACTERS:
            raise DocumentTooComplex(
                f"a page of a PDF may have {_MAX_PAGE_CHARACTERS} characters. Page {self.pageno} has more"
            )
        return super().render_char(matrix, font, fontsize, scaling, rise, cid, ncs, graphicstate)  # type: ignore[arg-type]

    def paint_path(self, *_: object) -> None:
        """Do nothing: lines and areas are not kept."""

    def render_image(self, *_: object) -> None:
        """Do nothing: pictures are not kept."""


class _TextInterpreter(PDFPageInterpreter):
    """Runs the operators of a page, and of the forms in it."""

    def do_q(self) -> None:
        """Save the graphics state; raises `DocumentTooComplex` for too many that are never restored."""
        if len(self.gstack) == _MAX_SAVED_STATES:
            raise DocumentTooComplex(
                f"a page of a PDF may have {_MAX_SAVED_STATES} saved graphics states in one another. A page has more"
            )
        super().do_q()


def read_pages(source: BinaryIO) -> Iterator[LTPage]:
    """Yield the pages. Errors of the library, of which damaged files raise many kinds, become `InvalidDocument`."""
    pages = _pages(source)
    number = 0
    while True:
        try:
            page = next(pages, None)
        except (PDFPasswordIncorrect, PDFEncryptionError) as error:
            raise InvalidDocument("the PDF needs a password; save it without one") from error
        except (KvasirError, MemoryError):
            raise
        except Exception as error:
            raise InvalidDocument(
                f"page {number + 1} of the PDF cannot be read: {str(error) or type(error).__name__}"
            ) from error
        if page is None:
            return
        number += 1
        if number > _MAX_PAGES:
            raise DocumentTooComplex(f"a PDF may have {_MAX_PAGES} pages. Given: more")
        yield page


def _pages(source: BinaryIO) -> Iterator[LTPage]:
    resources = PDFResourceManager()
    device = _TextPages(resources)
    interpreter = _TextInterpreter(resources, device)
    for page in PDFPage.create_pages(_TextDocument(PDFParser(source))):
        interpreter.process_page(page)
        yield device.get_result()


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"
_DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_TWENTIETHS = 20  # of a point
_MARGIN_POINTS = 56
_DATE = (1980, 1, 1, 0, 0, 0)  # equal documents are equal files


@dataclass(frozen=True, slots=True)
class Run:
    """A text with one style; `size` in points."""

    text: str
    size: float
    is_bold: bool = False
    is_italic: bool = False

    def with_text(self, text: str) -> "Run":
        """Return a run of this style with another text."""
        return Run(text, self.size, self.is_bold, self.is_italic)

    def without_text(self) -> "Run":
        """Return the style alone."""
        return self.with_text("")


@dataclass(slots=True)
class Paragraph:
    """Runs, with the indent and the space before them in points."""

    runs: list[Run]
    indent: float = 0.0
    space_before: float = 0.0
    is_centered: bool = False


class DocxWriter:
    """A document that grows page by page. `language` is that of its texts."""

    def __init__(self, language: str | None = None) -> None:
        self._language = language
        self._pages: list[tuple[float, float, str]] = []

    def add_page(self, width: float, height: float, paragraphs: Sequence[Paragraph]) -> None:
        """Add a page of this size in points."""
        self._pages.append((width, height, "".join(map(self._paragraph, paragraphs))))

    def write(self, sink: BinaryIO) -> None:
        """Write the document."""
        types = (
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{_TYPES}"/></Types>'
        )
        relationships = (
            f'<Relationships xmlns="{_RELATIONSHIPS}">'
            f'<Relationship Id="rId1" Type="{_DOCUMENT}" Target="word/document.xml"/></Relationships>'
        )
        body = "".join(self._sections())
        document = f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in (
                ("[Content_Types].xml", types),
                ("_rels/.rels", relationships),
                ("word/document.xml", document),
            ):
                info = zipfile.ZipInfo(name, _DATE)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, _DECLARATION + content)

    def _sections(self) -> Iterator[str]:
        """Yield the pages. Each is a section, which ends with its size: in its last paragraph, or in the body."""
        for index, (width, height, paragraphs) in enumerate(self._pages):
            margin = min(_MARGIN_POINTS, width / 8) * _TWENTIETHS
            size = f'<w:pgSz w:w="{width * _TWENTIETHS:.0f}" w:h="{height * _TWENTIETHS:.0f}"/>'
            sides = " ".join(f'w:{side}="{margin:.0f}"' for side in ("top", "right", "bottom", "left"))
            section = f'<w:sectPr>{size}<w:pgMar {sides} w:header="0" w:footer="0" w:gutter="0"/></w:sectPr>'
            is_last = index == len(self._pages) - 1
            yield paragraphs + (section if is_last else f"<w:p><w:pPr>{section}</w:pPr></w:p>")

    def _paragraph(self, paragraph: Paragraph) -> str:
        properties = f'<w:spacing w:before="{paragraph.space_before * _TWENTIETHS:.0f}" w:after="0"/>'
        properties += f'<w:ind w:left="{paragraph.indent * _TWENTIETHS:.0f}"/>'
        if paragraph.is_centered:
            properties += '<w:jc w:val="center"/>'
        return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(map(self._run, paragraph.runs))}</w:p>"

    def _run(self, run: Run) -> str:
        properties = "<w:b/>" * run.is_bold + "<w:i/>" * run.is_italic + f'<w:sz w:val="{max(2, run.size * 2):.0f}"/>'
        if self._language is not None:
            properties += f'<w:lang w:val="{html.escape(self._language)}"/>'
        text = html.escape(fit_for_xml(run.text), quote=False)
        return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


_CENTER_TOLERANCE = 0.03  # of the width of the page
_SIGNATURE = b"%PDF-"
_SIGNATURE_BYTES = 1024  # in which readers look for it


@dataclass(slots=True)
class _Block:
    """A paragraph of a page: its fragment, with a wrap for each style but the main one."""

    paragraph: Paragraph
    fragment: Fragment = ()
    styles: dict[int, Run] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Page:
    """The paragraphs of a page, and its size in points."""

    width: float
    height: float
    blocks: Sequence[_Block]


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, language: str | None = None) -> Rewrite:
    """Write the paragraphs of all pages as a Word document. Raises `InvalidDocument` for a PDF without text."""
    if _SIGNATURE not in source.read(_SIGNATURE_BYTES):
        raise InvalidDocument("the file is not a PDF, or is cut off at its beginning")
    source.seek(0)
    pages: list[_Page] = []
    num_characters = 0
    for page in read_pages(source):
        pages.append(_Page(page.width, page.height, list(_blocks(page))))
        num_characters += sum(len(run.text) for block in pages[-1].blocks for run in block.paragraph.runs)
        if num_characters > limits.max_uncompressed_bytes:
            raise DocumentTooComplex(f"a PDF may have {limits.max_uncompressed_bytes} characters. Given: more")
    if not num_characters:
        raise InvalidDocument("the PDF contains no text, only pictures; recognise its text (OCR) first")
    wanted = [block for page in pages for block in page.blocks if has_words(block.fragment)]
    translations = (yield AllFragments(block.fragment for block in wanted)) if wanted else []
    for block, translation in zip(wanted, translations, strict=True):
        block.paragraph.runs = list(_runs(translation, block.styles[0], block.styles))
    if sink is not None:
        writer = DocxWriter(language)
        for each in pages:
            writer.add_page(each.width, each.height, [block.paragraph for block in each.blocks])
        writer.write(sink)


def _blocks(page: LTPage) -> Iterator[_Block]:
    boxes = [box for box in page if isinstance(box, LTTextBox)]
    left = min((box.x0 for box in boxes), default=0.0)
    bottom = page.height
    for box in boxes:
        runs = list(_merged(_box_runs(box)))
        if not runs:
            continue
        center = (box.x0 + box.x1) / 2
        is_centered = (
            abs(center - page.width / 2) < _CENTER_TOLERANCE * page.width
            and box.x0 - left > 2 * _CENTER_TOLERANCE * page.width
        )
        space_before = max(0.0, bottom - box.y1)
        bottom = box.y0
        indent = 0.0 if is_centered else max(0.0, box.x0 - left)
        yield _with_fragment(Paragraph(runs, indent, min(space_before, 72.0), is_centered))


def _with_fragment(paragraph: Paragraph) -> _Block:
    """Return the block of a paragraph. The style with most characters is the plain text, under key 0."""
    lengths: dict[Run, int] = {}
    for run in paragraph.runs:
        lengths[run.without_text()] = lengths.get(run.without_text(), 0) + len(run.text)
    main = max(lengths, key=lambda style: lengths[style])
    block = _Block(paragraph, styles={0: main})
    nodes: list[Inline] = []
    for run in paragraph.runs:
        if run.without_text() == main or not run.text.strip():
            nodes.append(run.text)
        else:
            key = len(block.styles)
            block.styles[key] = run.without_text()
            nodes.append(Wrap(key, (run.text,)))
    block.fragment = joined(nodes)
    return block


def _runs(fragment: Fragment, style: Run, styles: dict[int, Run]) -> Iterator[Run]:
    for node in fragment:
        if isinstance(node, str):
            yield style.with_text(node)
        elif isinstance(node, Wrap):
            yield from _runs(node.children, styles[node.key], styles)


def _box_runs(box: LTTextBox) -> Iterator[Run]:
    """Yield the characters of a box as runs, its lines joined to one paragraph."""
    lines = list(box)
    sizes = [character.size for line in lines for character in line if isinstance(character, LTChar)]
    if not sizes:
        return
    size = round(median(sizes) * 2) / 2
    previous = Run("", size)
    for line in lines:
        text = line.get_text().strip()
        if not text:
            continue
        if previous.text:
            yield previous.with_text(" ") if not _is_divided(previous.text, text) else previous.with_text("\b")
        for character in line:
            if isinstance(character, LTChar):
                name = character.fontname.lower()
                previous = Run(
                    character.get_text(), size, "bold" in name or "black" in name, "italic" in name or "oblique" in name
                )
                yield previous
            elif character.get_text() == " ":
                yield previous.with_text(" ")
        previous = previous.with_text(text)


def _is_divided(line: str, following: str) -> bool:
    """Return whether the last word of a line continues in the next one."""
    return len(line) > 2 and line[-1] in "-\u00ad\u2010" and line[-2].islower() and following[:1].islower()


def _merged(runs: Iterator[Run]) -> Iterator[Run]:
    """Yield neighbouring runs of one style as one; a backspace removes the hyphen before it."""
    text, style = "", None
    for run in runs:
        if run.text == "\b":
            text = text.rstrip()[:-1]
            continue
        if not run.text.strip():
            text += run.text
            continue
        if style is None:
            style = run
        elif (run.size, run.is_bold, run.is_italic) != (style.size, style.is_bold, style.is_italic):
            yield style.with_text(text)
            text, style = "", run
        text += run.text
    if style is not None and text.strip():
        yield style.with_text(text.rstrip())
