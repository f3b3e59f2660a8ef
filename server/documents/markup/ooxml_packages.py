"""Packages of Word, PowerPoint and Excel: parts by their content types, paragraphs rewritten in a tree."""

import re
from collections.abc import Callable, Generator, Iterator
from typing import BinaryIO

from lxml import etree

from server.documents.fragment import Fragment, Rewrite, next_window
from server.documents.input import safe_xml
from server.documents.input.archive import Archive, opened
from server.documents.input.limits import FileLimits
from server.documents.markup.ooxml_runs import Paragraph
from server.interface.errors import DocumentTooComplex, InvalidDocument

_CONTENT_TYPES = "[Content_Types].xml"
_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
_WINDOW_PARAGRAPHS = 1000  # held at once, with their fragments
_STRICT = "{http://purl.oclc.org/ooxml/"  # the beginning of the names of ISO/IEC 29500-1
_MAX_TREE_TAGS = 600_000  # of a part that is parsed: some 200 bytes of memory each

# Yields the paragraphs of a part in document order. Receives control again when earlier ones may have been rewritten.
FindParagraphs = Callable[[etree._ElementTree], Iterator[Paragraph]]


def rewrite_package(
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    main_types: frozenset[str],
    text_types: frozenset[str],
    find_paragraphs: FindParagraphs,
    text_tag: re.Pattern[bytes],
) -> Rewrite:
    """Rewrite the parts of `text_types` and `main_types`, and copy the others. One of `main_types` must be there.

    A part in which `text_tag` finds no paragraph is copied unread: most sheets of a workbook have numbers and formulas,
    and may be far larger than its texts.
    """

    def rewrite_part(content: bytes, name: str, is_held: bool) -> Generator[list[Fragment], list[Fragment], bytes]:
        if b"\0" not in content and text_tag.search(content) is None:  # NULs: UTF-16
            safe_xml.check(content, name)
            return content
        if (num_tags := content.count(b"<")) > _MAX_TREE_TAGS:
            raise DocumentTooComplex(f"{name} may have {_MAX_TREE_TAGS} tags. Given: {num_tags}")
        tree = safe_xml.parse(content, name)
        if tree.getroot().tag.startswith(_STRICT):
            raise InvalidDocument(f"{name} is Strict Open XML, which is not supported; save the document as not strict")
        paragraphs = find_paragraphs(tree)
        has_changed = False
        while window := next_window(paragraphs, _WINDOW_PARAGRAPHS, is_held=is_held):
            fragments = [fragment for paragraph in window for fragment in paragraph.fragments]
            remaining = iter((yield fragments) if fragments else ())
            for paragraph in window:
                has_changed |= paragraph.replace([next(remaining) for _ in paragraph.fragments])
        return safe_xml.serialized(tree, content) if has_changed else content

    with opened(source, limits) as archive:
        parts = dict(part_types(archive))
        if not main_types & set(parts.values()):
            raise InvalidDocument("the archive contains no document of the format that its name indicates")
        wanted = main_types | text_types
        yield from archive.rewrite(sink, {name: rewrite_part for name, kind in parts.items() if kind in wanted})


def tag_pattern(*names: str) -> re.Pattern[bytes]:
    """Return a pattern for the start tags of these elements, with any prefix."""
    return re.compile(rf"<(?:[\w.-]+:)?(?:{'|'.join(names)})[\s/>]".encode())


def part_types(archive: Archive) -> Iterator[tuple[str, str]]:
    """Yield the name and the content type of each part: its own type, or else that of its extension.

    Both are compared without regard to case (ISO/IEC 29500-2).
    """
    types = safe_xml.parse(archive.read(_CONTENT_TYPES), _CONTENT_TYPES)
    of_part = {
        each.get("PartName", "").lower(): each.get("ContentType", "") for each in types.iter(_TYPES + "Override")
    }
    of_extension = {
        each.get("Extension", "").lower(): each.get("ContentType", "") for each in types.iter(_TYPES + "Default")
    }
    for name in archive.names:
        extension = name.rpartition(".")[2].lower()
        yield name, of_part.get(f"/{name}".lower()) or of_extension.get(extension, "")


def described(element: etree._Element) -> str:
    """Return a text that is equal for elements of equal meaning, whatever their prefixes and attribute order."""
    return repr([(str(each.tag), sorted(each.attrib.items()), len(each), each.text) for each in element.iter()])
