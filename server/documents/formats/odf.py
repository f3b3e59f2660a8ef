"""OpenDocument texts, spreadsheets and presentations: paragraphs wherever they are, and cells that contain a text."""

import html
import re
from collections.abc import Generator, Iterator
from functools import partial
from typing import BinaryIO

from server.documents.fragment import Fragment, Rewrite
from server.documents.input.archive import Archive, opened
from server.documents.input.limits import FileLimits
from server.documents.markup.items import Attributes, Item, Kind, Role, Unit, WriteText, rewritten, write_text
from server.documents.markup.named_texts import NamedTexts, compared_texts
from server.documents.markup.xml_items import xml_items
from server.interface.errors import InvalidDocument

_MEDIA_TYPE = "application/vnd.oasis.opendocument."
_PARTS = ("content.xml", "styles.xml")
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0 "
_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0 "
_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0 "

_SPREADSHEET = "spreadsheet"

_SPACES = re.compile("  +")
_FORMULA = re.compile(rb"\btable:(formula|condition)=(?:\"([^\"<>]*&quot;[^\"<>]*)\")")
_CELLS = (_TABLE + "table-cell", _TABLE + "covered-table-cell")
# A cell with any other type shows a number, a date or a truth value.
_TEXT_TYPES = (None, "string")

_NAMES = {
    Role.BLOCK: (_TEXT, "p h index-title-template"),
    Role.SOFT: (_TEXT, "span"),
    Role.HARD: (_TEXT, "a meta ruby ruby-base"),
    Role.SPACE: (_TEXT, "s"),
    # Text deleted under "track changes" is not shown.
    Role.BREAK: (_TEXT, "tab line-break tracked-changes"),
    Role.ISLAND: (_TEXT, "note"),
    Role.MARK: (
        _TEXT,
        "bookmark bookmark-start bookmark-end change change-start change-end reference-mark reference-mark-start "
        "reference-mark-end soft-page-break toc-mark toc-mark-start toc-mark-end alphabetical-index-mark "
        "alphabetical-index-mark-start alphabetical-index-mark-end user-index-mark user-index-mark-start "
        "user-index-mark-end",
    ),
}
_ROLES = {
    _OFFICE + "annotation-end": Role.MARK,
    # Only programs read these.
    **dict.fromkeys(
        (_OFFICE + name for name in ("automatic-styles", "font-face-decls", "scripts", "styles")), Role.BREAK
    ),
    **{namespace + name: role for role, (namespace, names) in _NAMES.items() for name in names.split()},
}


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, kind: str) -> Rewrite:
    """Rewrite the text of content.xml and styles.xml; other files are copied. `kind` ends the media type."""
    with opened(source, limits) as archive:
        media_type = archive.read("mimetype").decode("ascii", "replace").strip()
        if media_type.removesuffix("-template") != _MEDIA_TYPE + kind:
            raise InvalidDocument(
                f"the document must have the media type of an OpenDocument {kind}. Given: {media_type[:80]!r}"
            )
        rewrite_part = partial(_rewrite_part, names=_named_texts(archive) if kind == _SPREADSHEET else None)
        yield from archive.rewrite(sink, {name: rewrite_part for name in _PARTS if name in archive.names})


rewrite_text = partial(rewrite, kind="text")
rewrite_spreadsheet = partial(rewrite, kind=_SPREADSHEET)
rewrite_presentation = partial(rewrite, kind="presentation")


def _named_texts(archive: Archive) -> NamedTexts:
    """Return the texts that formulas, conditions and lists of a spreadsheet name."""
    content = archive.read(_PARTS[0]) if _PARTS[0] in archive.names else b""
    return NamedTexts.of(
        (),
        (
            text
            for kind, formula in _FORMULA.findall(content)
            for text in compared_texts(
                html.unescape(formula.decode("utf-8", "replace")), is_condition=kind == b"condition"
            )
        ),
    )


def _rewrite_part(
    content: bytes, name: str, is_held: bool, names: NamedTexts | None
) -> Generator[list[Fragment], list[Fragment], bytes]:
    items = xml_items(content, name, _role)
    if names is not None:
        items = _without_named(items, names)
    written = yield from rewritten(items, _text_writer, is_held=is_held)
    return written.encode()


def _without_named(items: Iterator[Item], names: NamedTexts) -> Iterator[Item]:
    """Yield the items with cells that are one of the texts as breaks."""
    before, item = Kind.BREAK, next(items, None)
    while item is not None:
        behind = next(items, None)
        is_whole = before is Kind.BREAK and (behind is None or behind.kind is Kind.BREAK)
        before = item.kind
        yield item._replace(kind=Kind.BREAK) if item.kind is Kind.TEXT and is_whole and item.text in names else item
        item = behind


def _text_writer(unit: Unit) -> WriteText:
    """Write every space behind another as an element, if the source has spaces as elements."""
    space = next((item.raw for item in unit.items if item.text == " " and item.raw.startswith("<")), None)
    if space is None:
        return write_text
    return lambda text: _SPACES.sub(lambda spaces: " " + space * (len(spaces[0]) - 1), write_text(text))


def _role(tag: str, attributes: Attributes, is_in_text: bool) -> Role:
    """Return the role of an element. In a paragraph, any other is a field (page number) or may contain paragraphs."""
    if tag in _CELLS and (
        attributes.get(_OFFICE + "value-type") not in _TEXT_TYPES
        or _TABLE + "formula" in attributes
        or _TABLE + "content-validation-name" in attributes  # of a list, say, of what the cell may contain
    ):
        return Role.BREAK
    if tag in _ROLES:
        return _ROLES[tag]
    if not is_in_text:
        return Role.STRUCTURE
    return Role.ATOM if tag.startswith(_TEXT) else Role.ISLAND
