"""Documents as an attacker builds them, and their rewriting in a process with limits."""

import asyncio
import contextlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from server.documents.formats.registry import format_of
from server.documents.input.limits import MEGABYTE, FileLimits
from server.documents.isolation.pool import DocumentProcessPool
from server.documents.isolation.process import ProcessLimits
from server.documents.rewriting import translate_document
from server.interface.errors import InvalidRequest
from tests.server.documents.documents import LOUD_PLAIN

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_WORKBOOK = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_XLIFF = "urn:oasis:names:tc:xliff:document:1.2"
_TYPES = "application/vnd.openxmlformats-officedocument."
_CONTAINER = "urn:oasis:names:tc:opendocument:xmlns:container"


def word(body: str) -> bytes:
    """A Word document with this body."""
    return _packed(
        {
            "[Content_Types].xml": _content_types({"word/document.xml": f"{_TYPES}wordprocessingml.document.main+xml"}),
            "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
        }
    )


def slides(body: str) -> bytes:
    """A presentation with one slide."""
    types = {
        "ppt/presentation.xml": f"{_TYPES}presentationml.presentation.main+xml",
        "ppt/slides/slide1.xml": f"{_TYPES}presentationml.slide+xml",
    }
    slide = f'<p:sld xmlns:p="p" xmlns:a="{_DRAWING}">{body}</p:sld>'
    return _packed(
        {
            "[Content_Types].xml": _content_types(types),
            "ppt/presentation.xml": "<x/>",
            "ppt/slides/slide1.xml": slide,
        }
    )


def workbook(strings: str) -> bytes:
    """A workbook with these shared strings."""
    types = {
        "xl/workbook.xml": f"{_TYPES}spreadsheetml.sheet.main+xml",
        "xl/sharedStrings.xml": f"{_TYPES}spreadsheetml.sharedStrings+xml",
    }
    return _packed(
        {
            "[Content_Types].xml": _content_types(types),
            "xl/workbook.xml": "<x/>",
            "xl/sharedStrings.xml": f'<sst xmlns="{_WORKBOOK}">{strings}</sst>',
        }
    )


def xliff(units: str) -> bytes:
    """An XLIFF file with these units."""
    return f'<xliff version="1.2" xmlns="{_XLIFF}"><file><body>{units}</body></file></xliff>'.encode()


def open_document(body: str, kind: str = "text") -> bytes:
    """An OpenDocument file of this kind with this body."""
    office, text, table, draw = (
        f"urn:oasis:names:tc:opendocument:xmlns:{name}:1.0" for name in ("office", "text", "table", "drawing")
    )
    content = (
        f'<office:document-content xmlns:office="{office}" xmlns:text="{text}" xmlns:table="{table}" '
        f'xmlns:draw="{draw}"><office:body><office:{kind}>{body}</office:{kind}></office:body>'
        "</office:document-content>"
    )
    return _packed({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content})


def book(body: str) -> bytes:
    """An EPUB book with one chapter."""
    root_file = '<rootfiles><rootfile full-path="c.opf"/></rootfiles>'
    item = '<manifest><item href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
    return _packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": f'<container xmlns="{_CONTAINER}">{root_file}</container>',
            "c.opf": f'<package xmlns="http://www.idpf.org/2007/opf">{item}</package>',
            "a.xhtml": f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>',
        }
    )


def _content_types(types: Mapping[str, str]) -> str:
    overrides = "".join(f'<Override PartName="/{name}" ContentType="{type_}"/>' for name, type_ in types.items())
    return f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{overrides}</Types>'


def _packed(files: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:  # not compressed: limits on ratios are tested elsewhere
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


class DocumentReader:
    """Processes that rewrite documents within limits, and the event loop to which they belong."""

    def __init__(self, cpu_seconds: float, megabytes: int) -> None:
        self._runner = asyncio.Runner()
        self._pool = DocumentProcessPool(ProcessLimits(cpu_seconds, megabytes * MEGABYTE))

    def outcome(self, content: bytes, extension: str) -> str:
        """Translate a document; returns "done", or the code of the error."""
        kind, limits = format_of(f"document{extension}"), FileLimits()

        async def run(source: Path, sink: Path) -> str:
            try:
                async with self._pool.rewrite(source, sink, kind, limits, lambda: None) as steps:
                    await translate_document(steps, LOUD_PLAIN, await steps.measure(), lambda *_: None)
            except InvalidRequest as error:
                return error.code
            return "done"

        with TemporaryDirectory() as folder:
            source = Path(folder) / "source"
            source.write_bytes(content)
            return self._runner.run(run(source, Path(folder) / "sink"))

    def close(self) -> None:
        """End the processes."""
        self._runner.run(self._pool.close())
        self._runner.close()


def outcome(content: bytes, extension: str, cpu_seconds: float, megabytes: int) -> str:
    """Translate a document in a process of its own; returns "done", or the code of the error."""
    with contextlib.closing(DocumentReader(cpu_seconds, megabytes)) as reader:
        return reader.outcome(content, extension)
