"""The kinds of documents, by the endings of their names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import BinaryIO

from server.documents.formats import csv, docx, epub, html, md, odt, po, pptx, srt, txt
from server.documents.fragment import Rewrite
from server.documents.input.limits import FileLimits
from server.interface.errors import UnsupportedFormat

# Reads a document, yields its fragments and is sent their translations, window by window, and writes the document with
# them. Without a sink it only reads. Raises `InvalidDocument` and `DocumentTooLarge`, at any time.
Rewriter = Callable[[BinaryIO, BinaryIO | None, FileLimits], Rewrite]


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """One kind of document."""

    extension: str
    media_type: str
    rewrite: Rewriter


_OFFICE = "application/vnd.openxmlformats-officedocument."

FORMATS: Mapping[str, DocumentFormat] = MappingProxyType(
    {
        extension: DocumentFormat(extension, media_type, rewrite)
        for extension, media_type, rewrite in (
            (".txt", "text/plain", txt.rewrite),
            (".md", "text/markdown", md.rewrite),
            (".html", "text/html", html.rewrite),
            (".htm", "text/html", html.rewrite),
            (".srt", "application/x-subrip", srt.rewrite),
            (".po", "text/x-gettext-translation", po.rewrite),
            (".csv", "text/csv", csv.rewrite),
            (".docx", f"{_OFFICE}wordprocessingml.document", docx.rewrite),
            (".pptx", f"{_OFFICE}presentationml.presentation", pptx.rewrite),
            (".odt", "application/vnd.oasis.opendocument.text", odt.rewrite),
            (".epub", "application/epub+zip", epub.rewrite),
        )
    }
)


def format_of(name: str) -> DocumentFormat:
    """The format of a file of this name; raises `UnsupportedFormat`, naming those there are."""
    extension = PurePath(name).suffix.lower()
    if extension not in FORMATS:
        wrong = f"{extension[:20]!r} files" if extension else "files without an ending"
        raise UnsupportedFormat(f"{wrong} are not translated here; there is {', '.join(FORMATS)}")
    return FORMATS[extension]
