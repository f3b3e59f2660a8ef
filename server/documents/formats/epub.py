"""EPUB books: their XHTML, chapter by chapter, and the older table of contents (NCX)."""

import posixpath
import re
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import BinaryIO
from urllib.parse import unquote

from server.documents.formats.html import rewritten_page
from server.documents.fragment import Fragment, Rewrite, RewritePart
from server.documents.input import safe_xml
from server.documents.input.archive import Archive, opened
from server.documents.input.limits import FileLimits
from server.documents.markup.html_elements import role_in_html, with_language
from server.documents.markup.items import Attributes, Role, escaped_texts, rewritten
from server.documents.markup.xml_items import XHTML, xml_items
from server.interface.errors import InvalidDocument

_MEDIA_TYPE = "application/epub+zip"
_CONTAINER = "META-INF/container.xml"
_ROOT_FILE = "{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_ITEM = "{http://www.idpf.org/2007/opf}item"
_DECLARED_LANGUAGE = re.compile(rb"(<(?:\w+:)?language(?:\s[^<>]*+)?>\s*+)[^<>\s]++")
_NCX_TEXT = "http://www.daisy.org/z3986/2005/ncx/ text"


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, language: str | None = None) -> Rewrite:
    """Rewrite the text of all chapters and of both kinds of contents; other files are copied.

    Attributes that declare the language of the book then declare `language`, as does its description.
    """
    with opened(source, limits) as archive:
        if "mimetype" not in archive.names or archive.read("mimetype").strip() != _MEDIA_TYPE.encode():
            raise InvalidDocument(f"the file `mimetype` of the document must contain {_MEDIA_TYPE}")
        yield from archive.rewrite(sink, dict(_parts(archive, language, limits)))


def _parts(archive: Archive, language: str | None, limits: FileLimits) -> Iterator[tuple[str, RewritePart]]:
    container = safe_xml.parse(archive.read(_CONTAINER), _CONTAINER, allow_doctype=True)
    rewrites = _REWRITES | {"text/html": partial(_rewrite_page, limits=limits)}
    for root_file in container.iter(_ROOT_FILE):
        package_name = unquote(root_file.get("full-path", ""))
        package = safe_xml.parse(archive.read(package_name), package_name, allow_doctype=True)
        if language is not None:
            yield package_name, partial(_rewrite_description, language=language)
        for item in package.iter(_ITEM):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(package_name), unquote(item.get("href", ""))))
            rewrite_part = rewrites.get(item.get("media-type", ""))
            if rewrite_part is not None and name in archive.names:
                yield name, partial(rewrite_part, language=language)


def _rewrite_chapter(
    content: bytes, name: str, is_held: bool, language: str | None
) -> Generator[list[Fragment], list[Fragment], bytes]:
    items = xml_items(content, name, _role_in_xhtml, allow_doctype=True)
    written = yield from rewritten(with_language(items, language), escaped_texts, is_held=is_held)
    return written.encode()


def _rewrite_page(
    content: bytes, _name: str, is_held: bool, language: str | None, limits: FileLimits
) -> Generator[list[Fragment], list[Fragment], bytes]:
    """Rewrite a page that need not be well-formed, as in some older books."""
    return (yield from rewritten_page(content, None, language, limits, is_held=is_held))


def _rewrite_contents(
    content: bytes, name: str, is_held: bool, language: str | None
) -> Generator[list[Fragment], list[Fragment], bytes]:
    items = xml_items(content, name, _role_in_ncx, allow_doctype=True)
    written = yield from rewritten(with_language(items, language), escaped_texts, is_held=is_held)
    return written.encode()


def _rewrite_description(
    content: bytes, _name: str, _is_held: bool, language: str
) -> Generator[list[Fragment], list[Fragment], bytes]:
    """Change the first language of the package; it has no text to translate."""
    yield from ()
    return _DECLARED_LANGUAGE.sub(rb"\g<1>" + language.encode(), content, count=1)


_REWRITES: dict[str, Callable[..., Generator[list[Fragment], list[Fragment], bytes]]] = {
    "application/xhtml+xml": _rewrite_chapter,
    "application/x-dtbncx+xml": _rewrite_contents,
}


def _role_in_xhtml(tag: str, attributes: Attributes, _is_in_text: bool) -> Role:
    namespace, _, name = tag.rpartition(" ")
    if namespace not in (XHTML, ""):
        return Role.ATOM  # formulas and drawings
    return Role.VERBATIM if name == "pre" else role_in_html(name, attributes)


def _role_in_ncx(tag: str, _attributes: Attributes, _is_in_text: bool) -> Role:
    return Role.BLOCK if tag == _NCX_TEXT else Role.STRUCTURE
