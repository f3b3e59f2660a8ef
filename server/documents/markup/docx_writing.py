"""Writing of a new Word document from pages of plain paragraphs."""

import html
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from server.documents.input.safe_xml import fit_for_xml

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
