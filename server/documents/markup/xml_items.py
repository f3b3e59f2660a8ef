"""An XML document as items, each with its original bytes.

expat reports where every tag begins; the bytes in between are copied, so that only translated text is written anew.
"""

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat  # safe behind `check_prolog`: no entity is declared

from server.documents.input import safe_xml
from server.documents.markup.html_elements import name_in_text
from server.documents.markup.items import Attributes, Item, Kind, Role, text_items
from server.interface.errors import InvalidDocument

# Returns the role of an element: by its expanded name ("uri local"), its attributes, and whether it lies in text.
Classify = Callable[[str, Attributes, bool], Role]

_BLOCKS = (Role.BLOCK, Role.VERBATIM, Role.STRUCTURE)
_OPAQUE = (Role.ATOM, Role.MARK, Role.BREAK, Role.SPACE)
XHTML = "http://www.w3.org/1999/xhtml"
_MAX_DEPTH = 256  # formats nest some twenty elements; fragments are read by recursion
_CHUNK_BYTES = 1 << 16  # parsed at once; the items of a chunk are yielded before the next is parsed


@dataclass(slots=True)
class _OpenElement:
    """The content of the document or of an island so far; `opening` is the raw tag of the island."""

    role: Role
    opening: str
    items: list[Item] = field(default_factory=list)


def xml_items(content: bytes, name: str, classify: Classify, allow_doctype: bool = False) -> Iterator[Item]:
    """Yield the document of `content` as items, in UTF-8; raises `InvalidDocument` with the `name` of the file."""
    encoding = safe_xml.check_prolog(content, name, allow_doctype)
    if encoding not in ("UTF-8", "ASCII", "US-ASCII"):
        content = safe_xml.in_utf8(safe_xml.parse(content, name, allow_doctype))
    return _Reader(content, name, classify, allows_undeclared_entities=allow_doctype).read()


class _Reader:
    """Cuts the bytes at the events of expat and classifies the pieces."""

    def __init__(self, content: bytes, name: str, classify: Classify, *, allows_undeclared_entities: bool) -> None:
        self._allows_undeclared_entities = allows_undeclared_entities
        self._content = content
        self._name = name
        self._classify = classify
        self._open_elements = [_OpenElement(Role.STRUCTURE, "")]
        self._roles: list[Role] = []
        self._contexts = [Role.STRUCTURE]  # role that decides about text, for each open element
        self._opaque: list[str] | None = None  # pieces of an element that is copied whole
        self._opaque_text: list[str] = []
        self._opaque_depth = 0
        self._pending: Callable[[str], None] | None = None
        self._pending_start = 0
        self._in_cdata = False

    def read(self) -> Iterator[Item]:
        """Yield all items."""
        parser = expat.ParserCreate(namespace_separator=" ")
        # Many pages of books have entities of HTML, whatever their document type.
        parser.UseForeignDTD(self._allows_undeclared_entities)

        def begin(handle: Callable[[str], None]) -> None:
            start = parser.CurrentByteIndex
            self._flush(start)
            self._pending, self._pending_start = handle, start

        def begin_text() -> None:
            if self._pending != self._text:  # expat reports lines and entities one by one
                begin(self._text)

        parser.StartElementHandler = lambda tag, attributes: begin(lambda raw: self._open(raw, tag, attributes))
        parser.EndElementHandler = lambda _: begin(self._close)
        parser.CharacterDataHandler = lambda _: begin_text()
        parser.SkippedEntityHandler = lambda *_: begin_text()
        parser.CommentHandler = lambda _: begin(self._mark)
        parser.ProcessingInstructionHandler = lambda *_: begin(self._mark)
        parser.DefaultHandler = lambda _: begin(self._other)
        parser.StartCdataSectionHandler = lambda: begin(self._cdata_begins)
        parser.EndCdataSectionHandler = lambda: begin(self._cdata_ends)
        document = self._open_elements[0]
        for start in range(0, len(self._content), _CHUNK_BYTES):
            try:
                parser.Parse(self._content[start : start + _CHUNK_BYTES], start + _CHUNK_BYTES >= len(self._content))
            except expat.ExpatError as error:
                raise InvalidDocument(f"{self._name} is not well-formed XML: {error}") from error
            yield from document.items
            document.items.clear()
        self._flush(len(self._content))
        yield from document.items

    def _flush(self, end: int) -> None:
        if self._pending is not None:
            self._pending(self._content[self._pending_start : end].decode())

    def _add(self, item: Item) -> None:
        self._open_elements[-1].items.append(item)

    def _other(self, raw: str) -> None:
        """Add the prolog, CDATA or white space behind the root; nothing there is translated."""
        if self._opaque is not None:
            self._opaque.append(raw)
        elif raw:
            self._add(Item(Kind.BREAK, raw))

    def _cdata_begins(self, raw: str) -> None:
        self._in_cdata = True
        self._other(raw)

    def _cdata_ends(self, raw: str) -> None:
        self._in_cdata = False
        self._other(raw)

    def _mark(self, raw: str) -> None:
        if self._opaque is not None:
            self._opaque.append(raw)
        else:
            self._add(Item(Kind.MARK, raw))

    def _text(self, raw: str) -> None:
        if self._in_cdata:
            self._other(raw)
            return
        context = self._contexts[-1]
        if self._opaque is not None:
            self._opaque.append(raw)
            self._opaque_text.append(html.unescape(raw))
        elif context is Role.STRUCTURE:
            self._add(Item(Kind.BREAK, raw))
        else:
            for item in text_items(raw, collapses_space=context is not Role.VERBATIM):
                self._add(item)

    def _open(self, raw: str, tag: str, attributes: Attributes) -> None:
        if len(self._roles) + self._opaque_depth >= _MAX_DEPTH:
            raise InvalidDocument(f"elements of {self._name} may be nested {_MAX_DEPTH} deep. Given: more")
        if self._opaque is not None:
            self._opaque.append(raw)
            self._opaque_depth += 1
            return
        context = self._contexts[-1]
        role = self._classify(tag, attributes, context is not Role.STRUCTURE)
        self._roles.append(role)
        if role in _OPAQUE:
            self._opaque, self._opaque_text, self._opaque_depth = [raw], [], 0
            return
        if role is Role.ISLAND:
            self._open_elements.append(_OpenElement(role, raw))
            context = Role.STRUCTURE
        elif role in _BLOCKS:
            self._add(Item(Kind.BREAK, raw))
            context = Role.VERBATIM if role is Role.BLOCK and context is Role.VERBATIM else role
        else:
            self._add(Item(Kind.OPEN, raw, is_soft=role is Role.SOFT, name=_name_in_text(tag)))
        self._contexts.append(context)

    def _close(self, raw: str) -> None:
        if self._opaque is not None:
            self._opaque.append(raw)
            if self._opaque_depth:
                self._opaque_depth -= 1
                return
            self._add(_opaque_item(self._roles.pop(), "".join(self._opaque), "".join(self._opaque_text)))
            self._opaque = None
            return
        role = self._roles.pop()
        self._contexts.pop()
        if role is Role.ISLAND:
            island = self._open_elements.pop()
            self._add(Item(Kind.ATOM, island.opening, inner=tuple(island.items), after=raw))
        else:
            self._add(Item(Kind.BREAK if role in _BLOCKS else Kind.CLOSE, raw, is_soft=role is Role.SOFT))


def _name_in_text(tag: str) -> str:
    namespace, _, name = tag.rpartition(" ")
    return name_in_text(name) if namespace in (XHTML, "") else ""


def _opaque_item(role: Role, raw: str, text: str) -> Item:
    match role:
        case Role.ATOM:
            return Item(Kind.ATOM, raw, text.strip())
        case Role.SPACE:
            return Item(Kind.TEXT, raw, " ")
        case Role.MARK:
            return Item(Kind.MARK, raw)
        case _:
            return Item(Kind.BREAK, raw)
