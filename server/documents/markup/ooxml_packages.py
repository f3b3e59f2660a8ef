"""Packages of Word, PowerPoint and Excel: parts by their content types, paragraphs rewritten in a tree."""

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import BinaryIO

from lxml import etree

from server.documents.fragment import Fragment, Rewrite
from server.documents.input import safe_xml
from server.documents.input.archive import Archive, opened
from server.documents.input.limits import FileLimits
from server.documents.markup.ooxml_runs import Paragraph
from server.interface.errors import InvalidDocument

_CONTENT_TYPES = "[Content_Types].xml"
_OVERRIDE = "{http://schemas.openxmlformats.org/package/2006/content-types}Override"
_WINDOW_PARAGRAPHS = 1000  # held at once, with their fragments

# Yields the paragraphs of a part in document order. Receives control again when earlier ones may have been rewritten.
FindParagraphs = Callable[[etree._ElementTree], Iterator[Paragraph]]


def rewrite_package(
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    main_types: frozenset[str],
    text_types: frozenset[str],
    find_paragraphs: FindParagraphs,
) -> Rewrite:
    """Rewrite the parts of `text_types` and `main_types`, and copy the others. One of `main_types` must be there."""

    def rewrite_part(content: bytes, name: str) -> Generator[list[Fragment], list[Fragment], bytes]:
        tree = safe_xml.parse(content, name)
        paragraphs = find_paragraphs(tree)
        has_changed = False
        while window := list(islice(paragraphs, _WINDOW_PARAGRAPHS)):
            fragments = [fragment for paragraph in window for fragment in paragraph.fragments]
            remaining = iter((yield fragments) if fragments else ())
            for paragraph in window:
                has_changed |= paragraph.replace([next(remaining) for _ in paragraph.fragments])
        return safe_xml.serialized(tree) if has_changed else content

    with opened(source, limits) as archive:
        parts = dict(part_types(archive))
        if not main_types & set(parts.values()):
            raise InvalidDocument("the archive contains no document of the format that its name indicates")
        wanted = main_types | text_types
        yield from archive.rewrite(sink, {name: rewrite_part for name, kind in parts.items() if kind in wanted})


def part_types(archive: Archive) -> Iterator[tuple[str, str]]:
    """Yield the name and the content type of each part that has a type of its own."""
    for override in safe_xml.parse(archive.read(_CONTENT_TYPES), _CONTENT_TYPES).iter(_OVERRIDE):
        yield override.get("PartName", "").lstrip("/"), override.get("ContentType", "")


def described(element: etree._Element) -> str:
    """Return a text that is equal for elements of equal meaning, whatever their prefixes and attribute order."""
    return repr([(str(each.tag), sorted(each.attrib.items()), len(each), each.text) for each in element.iter()])
