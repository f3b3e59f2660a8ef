"""HTML cut into pieces where Python's own parser says, fragments and broken documents too; nothing is written anew."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser

from server.text.readers.pieces import MarkupOptions, Piece, Role, without_mark

_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip
# Elements of a line; all that HTML knows beside them end a sentence, and so does a line break.
BLOCKS = frozenset((
    "address", "article", "aside", "base", "blockquote", "body", "br", "caption", "center", "col", "colgroup", "dd",
    "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frame",
    "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend", "li", "link",
    "main", "menu", "meta", "nav", "noscript", "ol", "optgroup", "option", "p", "search", "section", "select",
    "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "ul",
))  # fmt: skip
# Not translated: those of the first kind are part of a sentence, those of the second are not.
COPIED = frozenset((
    "code", "kbd", "math", "samp", "tt", "var",
))  # fmt: skip
LEFT_ALONE = frozenset((
    "audio", "canvas", "iframe", "listing", "noembed", "noframes", "object", "plaintext", "pre", "script", "style",
    "svg", "template", "textarea", "video", "xmp",
))  # fmt: skip


def read_html(text: str, options: MarkupOptions) -> list[Piece]:
    """The pieces of a document or a fragment."""
    front, text = without_mark(text)
    reader = _Reader(options)
    reader.read(text)
    return [*front, *_kept_together(reader.pieces)]


class _Reader(HTMLParser):
    """Notes where each piece begins; `getpos` of the parser is the place at which the handled piece begins."""

    def __init__(self, options: MarkupOptions) -> None:
        super().__init__(convert_charrefs=False)
        self.pieces: list[tuple[Piece, str]] = []  # with "open" or "close" for elements that are kept together
        self._options = options
        self._begun: list[tuple[int, Role, str, str]] = []

    def read(self, text: str) -> None:
        """Cut up a text."""
        self._starts = [0, *(place + 1 for place, character in enumerate(text) if character == "\n")]
        base = 0
        while base < len(text):
            self._base = base
            self._line = bisect_right(self._starts, base) - 1
            self.reset()
            failed = False
            try:
                # Without close(), which reads an unfinished tag again and again: it stays in `rawdata` and is kept.
                self.feed(text[base:])
            except AssertionError:  # a declaration that no browser knows either
                failed = True
            if not failed:
                rest = len(text) - len(self.rawdata)
                if rest < len(text):
                    role = Role.MARK if self.rawdata.startswith("<") else Role.TEXT
                    self._begun.append((rest, role, "", ""))
                break
            place = self._place()
            end = text.find(">", place) + 1 or len(text)
            self._begun.append((place, Role.MARK, "", ""))
            base = end
        self._cut(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, dict(attrs), is_empty=tag in _VOID)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Browsers see an opening tag unless the element is void; custom elements of templates mean an empty one.
        self._element(tag, dict(attrs), is_empty=True)

    def handle_endtag(self, tag: str) -> None:
        if tag in LEFT_ALONE:
            self._note(Role.MARK, tag, "close")
        elif self._is_border(tag):
            self._note(Role.BORDER, tag, "close")
        else:
            self._note(Role.CLOSING, tag, "close")

    def handle_data(self, data: str) -> None:
        is_broken_tag = len(data) > 1 and data[0] == "<"
        self._note(Role.MARK if is_broken_tag else Role.TEXT)

    def handle_entityref(self, name: str) -> None:
        self._note(Role.REFERENCE)

    def handle_charref(self, name: str) -> None:
        self._note(Role.REFERENCE)

    def handle_comment(self, data: str) -> None:
        self._note(Role.MARK)

    def handle_decl(self, decl: str) -> None:
        self._note(Role.BORDER)

    def handle_pi(self, data: str) -> None:
        self._note(Role.MARK)

    def unknown_decl(self, data: str) -> None:
        self._note(Role.MARK)

    def _element(self, name: str, attributes: Mapping[str, str | None], *, is_empty: bool) -> None:
        # A void element has nothing to keep together.
        if name in LEFT_ALONE:
            self._note(Role.MARK, name, "" if is_empty else "keep")
        elif name in COPIED or name in self._options.ignore_tags or is_not_translated(attributes):
            role = Role.BORDER if self._is_border(name) else Role.COPIED
            self._note(
                (Role.MARK if role is Role.COPIED else role) if is_empty else role, name, "" if is_empty else "keep"
            )
        elif self._is_border(name):
            self._note(Role.BORDER, name, "" if is_empty else "open")
        else:
            self._note(Role.MARK if is_empty else Role.OPENING, name, "" if is_empty else "open")

    def _is_border(self, name: str) -> bool:
        options = self._options
        return name in options.splitting_tags or (name in BLOCKS and name not in options.non_splitting_tags)

    def _note(self, role: Role, name: str = "", what: str = "") -> None:
        self._begun.append((self._place(), role, name, what))

    def _place(self) -> int:
        line, column = self.getpos()
        if line == 1:
            return self._base + column
        return self._starts[self._line + line - 1] + column

    def _cut(self, text: str) -> None:
        if not self._begun:
            return
        ends = [*(place for place, *_ in self._begun[1:]), len(text)]
        if self._begun[0][0]:
            self.pieces.append((Piece(Role.TEXT, text[: self._begun[0][0]]), ""))
        for (start, role, name, what), end in zip(self._begun, ends, strict=True):
            if start < end:
                self.pieces.append((Piece(role, text[start:end], name), what))


def is_not_translated(attributes: Mapping[str, str | None]) -> bool:
    """Whether an element's attributes say that it is left alone."""
    translate = attributes.get("translate", attributes.get("its:translate"))
    return (translate or "").lower() == "no" or "notranslate" in (attributes.get("class") or "").split()


def _kept_together(pieces: list[tuple[Piece, str]]) -> Iterator[Piece]:
    """Elements that are not translated as one piece each, with all that is in them."""
    kept: list[str] = []
    keeper, depth = Piece(Role.MARK, ""), 0
    for piece, what in pieces:
        if not depth:
            if what == "keep":
                keeper, depth, kept = piece, 1, [piece.raw]
            else:
                yield piece
            continue
        kept.append(piece.raw)
        if piece.name == keeper.name:
            depth += {"keep": 1, "open": 1, "close": -1}.get(what, 0)
            if not depth:
                yield Piece(keeper.role, "".join(kept))
    if depth:
        yield Piece(keeper.role, "".join(kept))
