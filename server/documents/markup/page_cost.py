"""Estimated work of a browser's parser on a page, from one linear scan of its tags.

Parsers for HTML repair what a page leaves open, and the repair can be far larger than the page: formatting that is
open at the end of a paragraph is opened again in every later one. The scan errs on both sides, because it does not
build the tree; limits of the process that parses catch the rest.
"""

from collections import Counter

import regex

from server.interface.errors import DocumentTooComplex

_TOKEN = regex.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<raw>script|style|textarea|title|xmp|iframe|noembed|noframes)\b.*?(?:</(?P=raw)|\Z)"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)"
    r"(?P<attributes>(?:[^>=]++|=\s*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))?+)*+)",
    regex.IGNORECASE | regex.DOTALL,
)
_QUOTED = regex.compile(r"\"[^\"]*+\"|'[^']*+'")
_FORMATTING = frozenset(
    ("a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")
)
# A start tag of these ends an open element of the same name.
_IMPLIED_END = frozenset(("p", "li", "dd", "dt"))
_BLOCKS = frozenset(
    (
        "address", "article", "aside", "blockquote", "center", "dd", "details", "div", "dl", "dt", "fieldset", "figure",
        "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "li", "main", "nav", "ol", "p", "pre",
        "section", "ul",
    )
)  # fmt: skip
_COUNTED = _FORMATTING | _BLOCKS | {"br", "select", "option"}
_MAX_ATTRIBUTES = 500  # parsers compare each attribute of a tag with all others
_MIN_COUNTED_CHARACTERS = 2 * _MAX_ATTRIBUTES
_MAX_OPTIONS = 5000  # the parser walks through a list once for each of its options
_COPIES_PER_ELEMENT = 4  # repeated formatting elements allowed for each tag of a page
_FREE_COPIES = 20_000
_MAX_EQUAL_FORMATS = 3  # parsers keep so many equal formatting elements open
_FREE_BLOCKS, _CHARACTERS_PER_BLOCK = 20_000, 20  # with line breaks: each takes 40 us to read and to write
_MAX_OPEN = 1000  # formatting elements, and blocks: browsers nest 512 elements


class _OpenFormatting:
    """Formatting elements that a page has left open, as a browser's parser counts them."""

    def __init__(self) -> None:
        self.num_carried = 0
        self._open: list[tuple[str, str, int]] = []  # name, attributes, depth of the block around it
        self._counts = Counter[tuple[str, str]]()

    @property
    def num_open(self) -> int:
        return len(self._open)

    def start(self, name: str, attributes: str, depth: int) -> None:
        if name in ("a", "nobr"):
            self.end(name)
        if self._counts[name, attributes] < _MAX_EQUAL_FORMATS:
            self._counts[name, attributes] += 1
            self._open.append((name, attributes, depth))

    def end(self, name: str) -> None:
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index][0] == name:
                _, attributes, depth = self._open.pop(index)
                self._counts[name, attributes] -= 1
                if depth < 0:
                    self.num_carried -= 1
                return

    def end_block(self, depth: int) -> None:
        """Mark formatting that was opened inside this block: later text is wrapped in it again."""
        for index in range(len(self._open) - 1, -1, -1):
            name, attributes, opened_at = self._open[index]
            if 0 <= opened_at < depth:
                return
            if opened_at >= depth:
                self._open[index] = (name, attributes, -1)
                self.num_carried += 1


def check_page_cost(text: str) -> None:
    """Raise `DocumentTooComplex` for a page whose tree would be far larger, or slower to build, than its text."""
    formatting = _OpenFormatting()
    blocks: list[str] = []
    num_tags = num_blocks = num_copies = num_options = 0
    max_blocks = _FREE_BLOCKS + len(text) // _CHARACTERS_PER_BLOCK
    in_select = False
    for token in _TOKEN.finditer(text):
        name, end, attributes = token.group("name", "end", "attributes")
        if name is None:
            continue
        name, is_end = name.lower(), bool(end)
        num_tags += 1
        if len(attributes) > _MIN_COUNTED_CHARACTERS:
            _check_attributes(token, text)
        if name not in _COUNTED:
            continue
        if name in _FORMATTING:
            if is_end:
                formatting.end(name)
            else:
                formatting.start(name, attributes, len(blocks))
        elif name in _BLOCKS:
            if (is_end or name in _IMPLIED_END) and name in blocks:
                while blocks.pop() != name:
                    pass
                formatting.end_block(len(blocks) + 1)
            if not is_end:
                blocks.append(name)
                del blocks[_MAX_OPEN:]
                num_copies += formatting.num_carried
                num_blocks += 1
        elif name == "br":
            num_blocks += 1
        else:
            in_select = not is_end if name == "select" else in_select
            num_options = num_options + in_select if name == "option" else 0
            if num_options > _MAX_OPTIONS:
                raise DocumentTooComplex(
                    f"a list of a page may have {_MAX_OPTIONS} options. The one that ends in line "
                    f"{_line(token, text)} has more"
                )
        if num_blocks > max_blocks:
            raise DocumentTooComplex(
                f"a page of {len(text)} characters may have {max_blocks} paragraphs, blocks and line breaks. "
                "It has more"
            )
        if formatting.num_open > _MAX_OPEN or num_copies > _FREE_COPIES + _COPIES_PER_ELEMENT * num_tags:
            raise DocumentTooComplex(
                f"the page leaves {formatting.num_open} formatting elements open in line {_line(token, text)}, and "
                "every paragraph repeats them; close them where their paragraph ends"
            )


def _check_attributes(token: regex.Match[str], text: str) -> None:
    num_attributes = len(regex.split(r"[\s/]+", _QUOTED.sub("", token["attributes"]).strip()))
    if num_attributes > _MAX_ATTRIBUTES:
        raise DocumentTooComplex(
            f"a tag may have {_MAX_ATTRIBUTES} attributes. The one in line {_line(token, text)} has {num_attributes}"
        )


def _line(token: regex.Match[str], text: str) -> int:
    return text.count("\n", 0, token.start()) + 1
