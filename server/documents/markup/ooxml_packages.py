"""What Word's and PowerPoint's packages share: parts by their content types, and paragraphs rewritten in a tree."""

from collections.abc import Callable, Generator, Iterator
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

# The paragraphs of a part, in the order of the document.
FindParagraphs = Callable[[etree._ElementTree], Iterator[Paragraph]]


def rewrite_package(
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    main_types: frozenset[str],
    text_types: frozenset[str],
    find_paragraphs: FindParagraphs,
) -> Rewrite:
    """Rewrite the parts of `text_types` and `main_types`, of which one must be there; everything else as it is."""

    def rewrite_part(content: bytes, name: str) -> Generator[list[Fragment], list[Fragment], bytes]:
        tree = safe_xml.parse(content, name)
        paragraphs = list(find_paragraphs(tree))
        fragments = [fragment for paragraph in paragraphs for fragment in paragraph.fragments]
        remaining = iter((yield fragments) if fragments else ())
        has_changed = False
        for paragraph in paragraphs:
            has_changed |= paragraph.replace([next(remaining) for _ in paragraph.fragments])
        return safe_xml.serialized(tree) if has_changed else content

    with opened(source, limits) as archive:
        parts = dict(_types(archive))
        if not main_types & set(parts.values()):
            raise InvalidDocument("the file is an archive, but not the kind of document that its name says")
        wanted = main_types | text_types
        yield from archive.rewrite(sink, {name: rewrite_part for name, kind in parts.items() if kind in wanted})


def _types(archive: Archive) -> Iterator[tuple[str, str]]:
    for override in safe_xml.parse(archive.read(_CONTENT_TYPES), _CONTENT_TYPES).iter(_OVERRIDE):
        yield override.get("PartName", "").lstrip("/"), override.get("ContentType", "")


def described(element: etree._Element) -> str:
    """The same for elements that mean the same, whatever their prefixes and the order of their attributes are."""
    return repr([(str(each.tag), sorted(each.attrib.items()), len(each), each.text) for each in element.iter()])
