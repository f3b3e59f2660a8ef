"""Positions of inline Markdown markup in its paragraph, which markdown-it-py does not record."""

from collections.abc import Callable, Sequence

import regex
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from server.documents.input.density import Density
from server.documents.markup.html_elements import name_in_text, role_in_html
from server.documents.markup.items import Item, Kind, Role
from server.documents.markup.template_code import code_at
from server.interface.errors import DocumentTooComplex

# Keys of a token's meta: its begin and end in the paragraph, and its text if that differs from the source.
_SPAN, _WRITTEN = "span", "written"
_RULES = (
    "newline", "escape", "backticks", "strikethrough", "emphasis", "link", "image", "autolink", "html_inline", "entity",
)  # fmt: skip

# Of a file, some 600 bytes and 20 us each; a paragraph has 3, an item of a list 5. Change logs have one item in 70
# characters.
_BLOCK_TOKENS, _MAX_BLOCK_TOKENS = Density(40_000, 30), 100_000

# Common extensions of CommonMark that are not text: markers at the beginning of a line (definitions, footnotes, notes
# with a title), boxes of tasks, formulas, and attributes at the end of a heading.
_BREAK = regex.compile(
    r"(?:\A|\n)[ \t]*+(?::[ \t]++|\[\^[^\[\]\n]++\]:[ \t]*+|\[![A-Za-z]++\][+-]?[ \t]*+(?:\n|\Z)"
    r"|:{3,}+[^\n]*+(?:\n|\Z)|(?:!!!|\?\?\?)\+?[ \t][^\n]*+(?:\n|\Z))|\A\[[ xX]\][ \t]"
    r"|\$\$[^$]++\$\$|\{[#.:][^{}\n]*+\}(?=[ \t]*+\Z)"
)
# References to footnotes, formulas, :names: of pictures.
_ATOM = regex.compile(
    r"\[\^[^\[\]\n]++\]|(?<!\w)\$(?=[^\s\d])[^$\n]{1,1000}+(?<=\S)\$(?!\w)|(?<![\w:]):[a-z][a-z0-9_+-]{1,63}+:(?![\w:])"
)

_TAG = regex.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][^\s/>]*+)")

Rule = Callable[[StateInline, bool], bool]


def new_parser() -> MarkdownIt:
    """Return a parser for blocks whose `inline` records the position of each token."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # These join texts, and would lose escapes and entities.
    parser.disable(["inline", "text_join", "fragments_join"])
    rules = {rule.name: rule.fn for rule in parser.inline.ruler.__rules__}
    for name in _RULES:
        parser.inline.ruler.at(name, _placing(name, rules[name]))
    parser.inline.ruler.before("newline", "beyond", _beyond)
    parser.core.ruler.before("block", "limit", _limit_tokens)
    return parser


class _BoundedTokens(list[Token]):
    """Tokens of a file while its blocks are parsed. Raises `DocumentTooComplex` for too many: a table is one block."""

    def __init__(self, num_characters: int) -> None:
        super().__init__()
        self._num_characters = num_characters
        self._most = min(_BLOCK_TOKENS.most(num_characters), _MAX_BLOCK_TOKENS)

    def append(self, token: Token, /) -> None:
        """Add a token."""
        if len(self) == self._most:
            raise DocumentTooComplex(
                f"a Markdown file of {self._num_characters} characters may have {self._most // 3} paragraphs or cells "
                f"of tables, or {self._most // 5} items of lists; divide it into several files"
            )
        super().append(token)


def _limit_tokens(state: StateCore) -> None:
    state.tokens = _BoundedTokens(len(state.src))


def _beyond(state: StateInline, silent: bool) -> bool:
    """Match extensions of CommonMark, and code of templates."""
    if state.src[state.pos] in "{<" and (code := code_at(state.src, state.pos)) is not None:
        if not silent:
            state.push("atom" if code.is_value else "break", "", 0).meta[_SPAN] = (code.begin, code.end)
        state.pos = code.end
        return True
    for type_, pattern in (("break", _BREAK), ("atom", _ATOM)):
        if match := pattern.match(state.src, state.pos):
            if not silent:
                state.push(type_, "", 0).meta[_SPAN] = match.span()
            state.pos = match.end()
            return True
    return False


def _placing(name: str, rule: Rule) -> Rule:
    """Return the rule, changed to record in its tokens the text that it matched."""

    def placed(state: StateInline, silent: bool) -> bool:
        start, num_tokens, is_pending = state.pos, len(state.tokens), bool(state.pending)
        if not rule(state, silent):
            return False
        if silent:
            return True
        # The first new token is the plain text from before, unless a line break took its spaces and nothing was left.
        new = state.tokens[-1:] if name == "newline" else state.tokens[num_tokens + is_pending :]
        end = state.pos
        if new and new[0].type == "link_open" and state.src[start] == "[":
            label_end = state.md.helpers.parseLinkLabel(state, start)
            new[0].meta[_SPAN] = (start, start + 1)
            new[-1].meta[_SPAN] = (label_end, end)
            if state.src[label_end:end] in ("]", "][]"):  # the text names the address, and its translation would not
                label = " ".join(state.src[start + 1 : label_end].split())
                new[-1].meta[_WRITTEN] = f"][{label}]"
        elif new and new[0].type == "link_open":  # <https://…>
            new[0].meta[_SPAN] = (start, end)
            new[0].meta["autolink"] = new[1].content
        else:
            width = (end - start) // max(len(new), 1)
            for index, token in enumerate(new):
                token.meta[_SPAN] = (
                    start + index * width,
                    end if index == len(new) - 1 else start + (index + 1) * width,
                )
        return True

    return placed


def inline_items(token: Token) -> list[Item]:
    """Return an inline token as items. Joined, their `raw` is its content, except that links name their addresses."""
    source = token.content
    items: list[Item] = []
    position = 0
    for child in token.children or ():
        span = child.meta.get(_SPAN)
        if span is None or span[0] < position:
            continue
        start, end = span
        if start > position:
            items.append(Item(Kind.TEXT, source[position:start], source[position:start]))
        items.append(_item(child, child.meta.get(_WRITTEN, source[start:end])))
        position = end
    if position < len(source):
        items.append(Item(Kind.TEXT, source[position:], source[position:]))
    return _with_whole_markers(items)


def _with_whole_markers(items: Sequence[Item]) -> list[Item]:
    """Join the two items that `**` is parsed as: the outer one has no text."""
    whole: list[Item] = []
    half = ""
    for item in items:
        if item.kind is Kind.TEXT and not item.text:
            if whole and whole[-1].kind is Kind.CLOSE:
                whole[-1] = whole[-1]._replace(raw=whole[-1].raw + item.raw)
            else:
                half += item.raw
        else:
            whole.append(item._replace(raw=half + item.raw) if half else item)
            half = ""
    return [*whole, Item(Kind.TEXT, half)] if half else whole


def _item(token: Token, raw: str) -> Item:
    match token.type:
        case "text" | "text_special":
            return Item(Kind.TEXT, raw, token.content)
        case "softbreak":
            return Item(Kind.TEXT, raw, " ")
        case "hardbreak" | "break":
            return Item(Kind.BREAK, raw)
        case "code_inline":
            return Item(Kind.ATOM, raw, token.content)
        case "link_open" if "autolink" in token.meta:
            return Item(Kind.ATOM, raw, str(token.meta["autolink"]))
        case "link_open" | "link_close":
            return Item(Kind.OPEN if token.nesting > 0 else Kind.CLOSE, raw, is_soft=False)
        case _ if token.nesting:
            return Item(Kind.OPEN if token.nesting > 0 else Kind.CLOSE, raw)
        case "html_inline" if (tag := _TAG.match(raw)) is not None:
            name = tag["name"].lower()
            role = role_in_html(name, {})
            kind = Kind.BREAK if role is Role.BLOCK else Kind.ATOM
            if role in (Role.SOFT, Role.HARD):
                kind = Kind.CLOSE if tag["end"] else Kind.OPEN
            return Item(kind, raw, is_soft=role is Role.SOFT, name=name_in_text(name))
        case _:  # images and comments
            return Item(Kind.ATOM, raw)
