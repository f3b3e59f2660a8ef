"""Document formats by file extension."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from pkgutil import resolve_name
from types import MappingProxyType
from typing import BinaryIO

from server.documents.formats.options import NO_FORMAT_OPTIONS, FormatOptions
from server.documents.fragment import CountedRewrite
from server.documents.input.encoding import check_encoding
from server.documents.input.limits import FileLimits
from server.interface.errors import InvalidRequest, UnsupportedFormat

# Reads a document, yields its fragments window by window, receives their translations, and writes the document with
# them. Without a sink it only reads. Raises `InvalidDocument`, `DocumentTooLarge` or `DocumentTooComplex` at any time.
# Takes the options named in `DocumentFormat.takes` as keyword arguments.
Rewriter = Callable[..., CountedRewrite]

_NO_TAG = re.compile(r"[^A-Za-z0-9-]")
_ALWAYS_GIVEN = "language"  # by the server, whatever the format


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """One document format. `takes` names the options that it has; the translation has `result_extension`.

    `rewriter` names a module of this folder and its function. It is imported with the first document: every start
    would wait for the modules of all formats, and their libraries.
    """

    extension: str
    media_type: str
    rewriter: str
    takes: frozenset[str] = frozenset()
    result_extension: str = ""  # empty: the same
    options: FormatOptions = NO_FORMAT_OPTIONS

    def rewrite(self, source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> CountedRewrite:
        """Rewrite a document with the options that the format has."""
        given = {name: value for name, value in self.options.given().items() if name in self.takes}
        rewrite: Rewriter = resolve_name(f"{__package__}.{self.rewriter}")
        return rewrite(source, sink, limits, **given)

    def result_name(self, name: str) -> str:
        """Return the name of the translation of a file."""
        return str(PurePath(name).with_suffix(self.result_extension)) if self.result_extension and name else name


_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_TEXT, _CAPTIONS, _TABLE, _MARKUP = (
    frozenset({"encoding"}),
    frozenset({"encoding", "language", "join_captions", "reading_speed"}),
    frozenset({"encoding", "delimiter", "columns"}),
    frozenset({"language"}),
)

FORMATS: Mapping[str, DocumentFormat] = MappingProxyType(
    {
        each.extension: each
        for each in (
            DocumentFormat(".txt", "text/plain", "txt.rewrite", _TEXT),
            DocumentFormat(".md", "text/markdown", "md.rewrite", _TEXT),
            DocumentFormat(".html", "text/html", "html.rewrite", _TEXT | _MARKUP),
            DocumentFormat(".htm", "text/html", "html.rewrite", _TEXT | _MARKUP),
            DocumentFormat(".xhtml", "application/xhtml+xml", "html.rewrite", _TEXT | _MARKUP),
            DocumentFormat(".srt", "application/x-subrip", "srt.rewrite", _CAPTIONS),
            DocumentFormat(".vtt", "text/vtt", "vtt.rewrite", _CAPTIONS),
            DocumentFormat(".ass", "text/x-ssa", "ass.rewrite", _CAPTIONS),
            DocumentFormat(".ssa", "text/x-ssa", "ass.rewrite", _CAPTIONS),
            DocumentFormat(".sub", "text/x-microdvd", "sub.rewrite", _CAPTIONS),
            DocumentFormat(".po", "text/x-gettext-translation", "po.rewrite", _MARKUP),
            DocumentFormat(".pot", "text/x-gettext-translation", "po.rewrite", _MARKUP, ".po"),
            DocumentFormat(".xliff", "application/xliff+xml", "xliff.rewrite", _MARKUP),
            DocumentFormat(".xlf", "application/xliff+xml", "xliff.rewrite", _MARKUP),
            DocumentFormat(".json", "application/json", "json.rewrite", _TEXT),
            DocumentFormat(".arb", "application/json", "json.rewrite", _TEXT),
            DocumentFormat(".yaml", "application/yaml", "yaml.rewrite", _TEXT),
            DocumentFormat(".yml", "application/yaml", "yaml.rewrite", _TEXT),
            DocumentFormat(".properties", "text/x-java-properties", "properties.rewrite", _TEXT),
            DocumentFormat(".strings", "text/x-apple-strings", "strings.rewrite", _TEXT),
            DocumentFormat(".csv", "text/csv", "csv.rewrite", _TABLE),
            DocumentFormat(".tsv", "text/tab-separated-values", "csv.rewrite_tabs", _TABLE - {"delimiter"}),
            DocumentFormat(".docx", f"{_OFFICE}wordprocessingml.document", "docx.rewrite"),
            DocumentFormat(".pptx", f"{_OFFICE}presentationml.presentation", "pptx.rewrite"),
            DocumentFormat(".xlsx", f"{_OFFICE}spreadsheetml.sheet", "xlsx.rewrite"),
            DocumentFormat(".odt", f"{_OPEN_DOCUMENT}text", "odf.rewrite_text"),
            DocumentFormat(".ods", f"{_OPEN_DOCUMENT}spreadsheet", "odf.rewrite_spreadsheet"),
            DocumentFormat(".odp", f"{_OPEN_DOCUMENT}presentation", "odf.rewrite_presentation"),
            DocumentFormat(".epub", "application/epub+zip", "epub.rewrite", _MARKUP),
            DocumentFormat(".pdf", f"{_OFFICE}wordprocessingml.document", "pdf.rewrite", _MARKUP, ".docx"),
        )
    }
)


def format_of(name: str, options: FormatOptions = NO_FORMAT_OPTIONS, format_name: str | None = None) -> DocumentFormat:
    """Return the format of a file of this name, or the one named (`srt` or `.srt`), with its options.

    Raises `UnsupportedFormat` with the formats available, and `InvalidRequest` for an option that the format does not
    have, or a wrong value.
    """
    extension = PurePath(name).suffix.lower()
    if format_name is not None:
        extension = f".{format_name.lower().removeprefix('.')}"
    if extension not in FORMATS:
        given = f"{extension[:20]!r} files" if extension else "files without an extension"
        raise UnsupportedFormat(
            f"{given} are not supported; available: {', '.join(FORMATS)}. Set `format` if the file is one of these"
        )
    found = FORMATS[extension]
    for option in options.given():
        if option not in found.takes and option != _ALWAYS_GIVEN:
            users = ", ".join(each.extension for each in FORMATS.values() if option in each.takes)
            raise InvalidRequest(f"`{option}` is for {users} files only. Given: a {extension} file")
    return replace(found, options=_checked(options))


def _checked(options: FormatOptions) -> FormatOptions:
    if options.delimiter is not None:
        from server.documents.formats.csv import check_delimiter

        options = replace(options, delimiter=check_delimiter(options.delimiter))
    if options.encoding is not None:
        check_encoding(options.encoding)
    if options.language is not None:  # written into attributes
        options = replace(options, language=_NO_TAG.sub("-", options.language))
    return options
