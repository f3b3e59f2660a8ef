"""Reader of XML: cuts the source at the positions of Expat's events, and expands no entity."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from itertools import takewhile
from xml.parsers import expat

import regex

from server.interface.errors import InvalidRequest
from server.interface.interruption import checkpoint
from server.text.readers.html import BLOCK_ELEMENTS, PROTECTED_ELEMENTS, SKIPPED_ELEMENTS, is_not_translated
from server.text.readers.pieces import MarkupOptions, Piece, Role, split_byte_order_mark

# Around fragments, which have text or several elements at the top.
_FRONT, _BACK = b"<kvasir>", b"</kvasir>"
_MAX_DEPTH = 1000
# White space, comments and processing instructions may stand in front of a document type. Possessive: read once.
_PROLOG = regex.compile(
    r"(?:[ \t\r\n]++|<!--(?:[^-]++|-(?!-))*+-->|<\?(?!xml[ \t\r\n])(?:[^?]++|\?(?!>))*+\?>)*+<!DOCTYPE[ \t\r\n]"
)


@dataclass(slots=True)
class _Element:
    name: str
    is_kept: bool
    is_mixed: bool = False  # has text of its own, so that elements next to it are part of sentences
    is_empty: bool = False
    is_inline: bool = False
    has_text: bool = False  # in it or in an element inside it


@dataclass(slots=True)
class _Event:
    """The beginning of a piece inside the element `parent`."""

    start: int
    role: Role
    parent: _Element
    element: _Element | None = None


@dataclass(slots=True)
class _Events:
    stack: list[_Element] = field(default_factory=lambda: [_Element("", False)])
    found: list[_Event] = field(default_factory=list)


def read_xml(text: str, options: MarkupOptions) -> list[Piece]:
    """Return the pieces of a document or a fragment. Raises `InvalidRequest` if it is not well-formed."""
    front, text = split_byte_order_mark(text)
    return [*front, *_pieces(text, options)]


def _pieces(text: str, options: MarkupOptions) -> list[Piece]:
    is_document = text.startswith("<?xml") or _PROLOG.match(text) is not None
    content = text.encode()
    data = content if is_document else _FRONT + content + _BACK
    events = _events(data, options)
    offset = 0 if is_document else len(_FRONT)
    if not is_document:
        events = [event for event in events if offset <= event.start < offset + len(content)]
    if not events:
        return [Piece(Role.BORDER, text)]
    ends = [event.start for event in events[1:]] + [len(data) - (0 if is_document else len(_BACK))]
    pieces: list[Piece] = []
    if events[0].start > offset:
        pieces.append(Piece(Role.BORDER, data[offset : events[0].start].decode()))
    kept: _Element | None = None
    for event, end in zip(events, ends, strict=True):
        checkpoint()
        raw = data[event.start : end].decode()
        if kept is not None:
            pieces[-1] = Piece(pieces[-1].role, pieces[-1].raw + raw)
            if event.element is kept:
                kept = None
        elif raw:
            pieces.append(_piece(event, raw, options))
            if event.element is not None and event.element.is_kept and not event.element.is_empty:
                kept = event.element
    return pieces


def _piece(event: _Event, raw: str, options: MarkupOptions) -> Piece:
    element = event.element
    if element is None:
        return Piece(event.role, raw)
    local = element.name.rpartition(":")[2]
    named = {element.name, local}
    splits = not options.splitting_tags.isdisjoint(named) or local in BLOCK_ELEMENTS
    # An element without text inside an inline one divides no sentence.
    is_inline = (event.parent.is_mixed or (event.parent.is_inline and not element.has_text)) and not splits
    if not options.non_splitting_tags.isdisjoint(named):
        is_inline = True
    element.is_inline = is_inline
    if not is_inline:
        return Piece(Role.BORDER, raw)
    if element.is_kept:
        return Piece(Role.MARK if element.is_empty or local in SKIPPED_ELEMENTS else Role.PROTECTED, raw)
    return Piece(Role.MARK if element.is_empty else event.role, raw, element.name)


def _events(data: bytes, options: MarkupOptions) -> list[_Event]:
    parser = expat.ParserCreate(encoding="utf-8")
    events = _Events()
    stack, found = events.stack, events.found

    def record(role: Role) -> None:
        if not in_cdata:
            found.append(_Event(parser.CurrentByteIndex, role, stack[-1]))

    def has_text() -> None:
        stack[-1].is_mixed = True
        for element in takewhile(lambda each: not each.has_text, reversed(stack)):
            element.has_text = True

    def start(name: str, attributes: Mapping[str, str]) -> None:
        checkpoint()
        local = name.rpartition(":")[2]
        is_kept = (
            local in PROTECTED_ELEMENTS
            or local in SKIPPED_ELEMENTS
            or not options.ignore_tags.isdisjoint((name, local))
            or is_not_translated(attributes)
        )
        element = _Element(name, is_kept)
        found.append(_Event(parser.CurrentByteIndex, Role.OPENING, stack[-1], element))
        stack.append(element)
        if len(stack) > _MAX_DEPTH:
            raise InvalidRequest(f"XML must be nested at most {_MAX_DEPTH} deep")

    def end(_: str) -> None:
        element = stack.pop()
        at = parser.CurrentByteIndex
        element.is_empty = found[-1].element is element and data[at - 2 : at] == b"/>"
        if not element.is_empty:
            found.append(_Event(at, Role.CLOSING, stack[-1], element))

    def characters(text: str) -> None:
        if in_cdata:
            return
        at = parser.CurrentByteIndex
        role = Role.REFERENCE if data[at : at + 1] == b"&" else Role.TEXT
        if not text.isspace():
            has_text()
        found.append(_Event(at, role, stack[-1]))

    in_cdata = False

    def begin_cdata() -> None:
        nonlocal in_cdata
        record(Role.MARK)
        in_cdata = True

    def end_cdata() -> None:
        nonlocal in_cdata
        in_cdata = False

    def default(text: str) -> None:
        if text.startswith("&") and len(stack) > 1:
            has_text()
            is_known = unescape(text) != text  # as HTML's &nbsp; is
            record(Role.REFERENCE if is_known else Role.PROTECTED)  # others only the document's type defines
        elif not in_cdata and text != "]]>":
            record(Role.MARK if len(stack) > 1 else Role.BORDER)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = characters
    parser.StartCdataSectionHandler, parser.EndCdataSectionHandler = begin_cdata, end_cdata
    parser.DefaultHandler = default  # with it Expat expands no entity of the document
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.UseForeignDTD(True)  # otherwise entities without a declaration would be errors
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        at = len(_FRONT) * (data.startswith(_FRONT) and error.lineno == 1)
        raise InvalidRequest(
            f"not well-formed XML: {expat.ErrorString(error.code)} in line {error.lineno}, "
            f"column {error.offset - at + 1}; format html reads it"
        ) from None
    return found
