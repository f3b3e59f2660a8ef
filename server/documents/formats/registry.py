"""Document formats by file extension."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from types import MappingProxyType
from typing import BinaryIO

from server.documents.formats import csv, docx, epub, html, md, odt, po, pptx, srt, txt
from server.documents.formats.csv_delimiter import DELIMITER_NAMES, DELIMITERS
from server.documents.fragment import Rewrite
from server.documents.input.limits import FileLimits
from server.interface.errors import InvalidRequest, UnsupportedFormat

# Reads a document, yields its fragments window by window, receives their translations, and writes the document with
# them. Without a sink it only reads. Raises `InvalidDocument`, `DocumentTooLarge` or `DocumentTooComplex` at any time.
Rewriter = Callable[[BinaryIO, BinaryIO | None, FileLimits], Rewrite]


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """One document format. `delimiter` separates the cells of a table; None detects it."""

    extension: str
    media_type: str
    rewrite: Rewriter
    delimiter: str | None = None


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


def format_of(name: str, delimiter: str | None = None) -> DocumentFormat:
    """Return the format of a file of this name; `delimiter` sets the one of a table.

    Raises `UnsupportedFormat` with the formats available, and `InvalidRequest` for a wrong delimiter.
    """
    extension = PurePath(name).suffix.lower()
    if extension not in FORMATS:
        given = f"{extension[:20]!r} files" if extension else "files without an extension"
        raise UnsupportedFormat(f"{given} are not supported; available: {', '.join(FORMATS)}")
    found = FORMATS[extension]
    if delimiter is None:
        return found
    if extension != ".csv":
        raise InvalidRequest(f"`delimiter` is for .csv files only. Given: a {extension} file")
    written = DELIMITER_NAMES.get(delimiter, delimiter)
    if written not in DELIMITERS:
        allowed = ", ".join([*map(repr, DELIMITERS), *DELIMITER_NAMES])
        raise InvalidRequest(f"`delimiter` must be one of {allowed}. Given: {delimiter[:20]!r}")
    return replace(found, delimiter=written, rewrite=partial(csv.rewrite, delimiter=written))
