"""Pages of a PDF with the places of their characters, as pdfminer.six finds them. Drawings are left out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from pdfminer.converter import PDFPageAggregator
from pdfminer.layout import (
    LAParams,
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
