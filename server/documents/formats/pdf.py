"""PDF: its text as a Word document, with pages, paragraphs, indents, alignment, sizes, bold and italic type.

Pictures, drawings, colours, tables as such, links and forms are not kept. pdfminer.six finds lines and paragraphs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import BinaryIO

from pdfminer.layout import LTChar, LTPage, LTTextBox

from server.documents.fragment import AllFragments, Fragment, Inline, Rewrite, Wrap, has_words, joined
from server.documents.input.limits import FileLimits
from server.documents.input.pdf_pages import read_pages
from server.documents.markup.docx_writing import DocxWriter, Paragraph, Run
from server.interface.errors import DocumentTooComplex, InvalidDocument

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
