"""Reader of HTML, fragments and broken documents too: cuts the source at the positions of Python's own parser."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser

from server.interface.interruption import checkpoint
from server.text.readers.pieces import MarkupOptions, Piece, Role, split_byte_order_mark

_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip
# Block elements and line breaks end a sentence; all other elements are inline.
BLOCK_ELEMENTS = frozenset((
    "address", "article", "aside", "base", "blockquote", "body", "br", "caption", "center", "col", "colgroup", "dd",
    "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frame",
    "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend", "li", "link",
    "main", "menu", "meta", "nav", "noscript", "ol", "optgroup", "option", "p", "search", "section", "select",
    "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "ul",
))  # fmt: skip
# Not translated, and part of a sentence.
PROTECTED_ELEMENTS = frozenset((
    "code", "kbd", "math", "samp", "tt", "var",
))  # fmt: skip
# Not translated, and not part of a sentence.
SKIPPED_ELEMENTS = frozenset((
    "audio", "canvas", "iframe", "listing", "noembed", "noframes", "object", "plaintext", "pre", "rp", "rt", "script",
    "style", "svg", "template", "textarea", "video", "xmp",
))  # fmt: skip


def read_html(text: str, options: MarkupOptions) -> list[Piece]:
    """Return the pieces of a document or a fragment."""
    front, text = split_byte_order_mark(text)
    reader = _Reader(options)
    reader.read(text)
    return [*front, *_kept_together(reader.pieces)]


class _Reader(HTMLParser):
    """Records where each piece begins, from the parser's `getpos` in each handler."""

    def __init__(self, options: MarkupOptions) -> None:
        super().__init__(convert_charrefs=False)
        self.pieces: list[tuple[Piece, str]] = []  # with "open", "close" or "keep" for elements
        self._options = options
        self._begun: list[tuple[int, Role, str, str]] = []

    def read(self, text: str) -> None:
        """Cut a text into pieces."""
        self._starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]
        base = 0
        while base < len(text):
            self._base = base
            self._line = bisect_right(self._starts, base) - 1
            self.reset()
            failed = False
            try:
                # Without close(), which reads an unfinished tag again and again: it stays in `rawdata` and is kept.
                self.feed(text[base:])
            except AssertionError:  # a declaration that browsers do not support either
                failed = True
            if not failed:
                rest = len(text) - len(self.rawdata)
                if rest < len(text):
                    role = Role.MARK if self.rawdata.startswith("<") else Role.TEXT
                    self._begun.append((rest, role, "", ""))
                break
            position = self._position()
            end = text.find(">", position) + 1 or len(text)
            self._begun.append((position, Role.MARK, "", ""))
            base = end
        self._cut(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, dict(attrs), is_empty=tag in _VOID)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Browsers see an opening tag unless the element is void; custom elements of templates mean an empty one.
        self._element(tag, dict(attrs), is_empty=True)

    def handle_endtag(self, tag: str) -> None:
        if tag in SKIPPED_ELEMENTS:
            self._record(Role.MARK, tag, "close")
        elif self._is_border(tag):
            self._record(Role.BORDER, tag, "close")
        else:
            self._record(Role.CLOSING, tag, "close")

    def handle_data(self, data: str) -> None:
        is_broken_tag = len(data) > 1 and data[0] == "<"
        self._record(Role.MARK if is_broken_tag else Role.TEXT)

    def handle_entityref(self, name: str) -> None:
        self._record(Role.REFERENCE)

    def handle_charref(self, name: str) -> None:
        self._record(Role.REFERENCE)

    def handle_comment(self, data: str) -> None:
        self._record(Role.MARK)

    def handle_decl(self, decl: str) -> None:
        self._record(Role.BORDER)

    def handle_pi(self, data: str) -> None:
        self._record(Role.MARK)

    def unknown_decl(self, data: str) -> None:
        self._record(Role.MARK)

    def _element(self, name: str, attributes: Mapping[str, str | None], *, is_empty: bool) -> None:
        # A void element has no content to keep with it.
        if name in SKIPPED_ELEMENTS:
            self._record(Role.MARK, name, "" if is_empty else "keep")
        elif name in PROTECTED_ELEMENTS or name in self._options.ignore_tags or is_not_translated(attributes):
            role = Role.BORDER if self._is_border(name) else Role.PROTECTED
            self._record(
                (Role.MARK if role is Role.PROTECTED else role) if is_empty else role, name, "" if is_empty else "keep"
            )
        elif self._is_border(name):
            self._record(Role.BORDER, name, "" if is_empty else "open")
        else:
            self._record(Role.MARK if is_empty else Role.OPENING, name, "" if is_empty else "open")

    def _is_border(self, name: str) -> bool:
        options = self._options
        return name in options.splitting_tags or (name in BLOCK_ELEMENTS and name not in options.non_splitting_tags)

    def _record(self, role: Role, name: str = "", event: str = "") -> None:
        checkpoint()
        self._begun.append((self._position(), role, name, event))

    def _position(self) -> int:
        line, column = self.getpos()
        if line == 1:
            return self._base + column
        return self._starts[self._line + line - 1] + column

    def _cut(self, text: str) -> None:
        if not self._begun:
            return
        ends = [*(start for start, *_ in self._begun[1:]), len(text)]
        if self._begun[0][0]:
            self.pieces.append((Piece(Role.TEXT, text[: self._begun[0][0]]), ""))
        for (start, role, name, event), end in zip(self._begun, ends, strict=True):
            if start < end:
                self.pieces.append((Piece(role, text[start:end], name), event))


def is_not_translated(attributes: Mapping[str, str | None]) -> bool:
    """Return whether the attributes of an element exclude it from translation."""
    translate = attributes.get("translate", attributes.get("its:translate"))
    return (translate or "").lower() == "no" or "notranslate" in (attributes.get("class") or "").split()


def _kept_together(pieces: list[tuple[Piece, str]]) -> Iterator[Piece]:
    """Yield the pieces, with each element that is not translated joined into one piece."""
    kept: list[str] = []
    keeper, depth = Piece(Role.MARK, ""), 0
    for piece, event in pieces:
        if not depth:
            if event == "keep":
                keeper, depth, kept = piece, 1, [piece.raw]
            else:
                yield piece
            continue
        kept.append(piece.raw)
        if piece.name == keeper.name:
            depth += {"keep": 1, "open": 1, "close": -1}.get(event, 0)
            if not depth:
                yield Piece(keeper.role, "".join(kept))
    if depth:
        yield Piece(keeper.role, "".join(kept))
