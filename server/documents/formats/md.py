"""Markdown: parsed as CommonMark with tables, and written again byte for byte where nothing was translated."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import BinaryIO, Literal

import regex
from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from server.documents.formats.html import html_items
from server.documents.fragment import Rewrite
from server.documents.input.encoding import read_text
from server.documents.input.limits import Density, FileLimits
from server.documents.markup.html_elements import name_in_text, role_in_html
from server.documents.markup.items import Item, Kind, Role, Unit, WriteText, rewritten
from server.documents.markup.line_wrapping import rewrap, with_one_line_end
from server.documents.markup.template_code import code_at, end_of_front_matter
from server.interface.errors import DocumentTooComplex

# Keys of a token's meta: its begin and end in the paragraph, and its text if that differs from the source.
_SPAN, _WRITTEN = "span", "written"
_RULES = (
    "newline", "escape", "backticks", "strikethrough", "emphasis", "link", "image", "autolink", "html_inline", "entity",
)  # fmt: skip

# Of a file, some 600 bytes and 20 us each; a paragraph has 3, an item of a list 5. Change logs have one item in 70
# characters.
_BLOCK_TOKENS, _MAX_BLOCK_TOKENS = Density(40_000, 30), 100_000

# Of quotations one within another; a list takes two. The parser passes over what is deeper, and needs some frames of
# Python for each.
_MAX_LEVELS = 96

# Common extensions of CommonMark that are not text: markers at the beginning of a line (definitions, footnotes, notes),
# boxes of tasks, formulas, attributes at the end of a heading, imports of MDX. A note may have a title.
_BREAK = regex.compile(
    r"(?:\A|\n)[ \t]*+(?::[ \t]++|\[\^[^\[\]\n]++\]:[ \t]*+"
    r"|\[[^\[\]\n]++\]:[ \t]*+\S++(?:[ \t]++[\"'(][^\n]*+)?(?=\n|\Z)"
    r"|\[![A-Za-z]++\][+-]?[ \t]*+(?P<words>[^\s][^\n]*+)?(?P<behind>\n|\Z)"
    r"|:{3,}+[ \t]*+(?:\{[^{}\n]*+\}|[\w-]++(?:\{[^{}\n]*+\})?+)?+[ \t]*+\[?(?P<words>[^\s\[\]{}][^\n\[\]{}]*+)?"
    r"(?P<behind>[^\n]*+(?:\n|\Z))"
    r"|(?:!!!|\?\?\?)\+?[ \t][^\n\"]*+\"?(?P<words>(?<=\")[^\n\"]++)?(?P<behind>\"?[^\n\"]*+(?:\n|\Z))"
    r"|import\s(?:[^;'\"]{0,1000}?\sfrom\s*)?['\"][^'\"\n]++['\"];?[ \t]*+(?=\n|\Z)"
    r"|export\s++(?:async|class|const|default|function|let|var|[*{])\b(?=[^\n]*[={(;])(?s:.*+)\Z)"
    r"|\A\[[ xX]\][ \t]|\$\$[^$]++\$\$|\{[#.:][^{}\n]*+\}(?=[ \t]*+\Z)"
)
# Marked, raised and lowered words: ==marked==, ++inserted words++, x^2^, H~2~O, ^[a note]; links whose address is in
# another file.
_MARKED = regex.compile(
    r"(?<!\w)(?P<open>==|\+\+)(?=[^\s=+])(?P<words>[^\n=+*_`\[\]<>~^]++)(?<!\s)(?P<close>(?P=open))(?!\w)"
    r"|(?<=\w)(?P<open>\^|~)(?P<words>\w{1,16}+)(?P<close>(?P=open))|(?P<open>\^\[)(?P<words>[^\[\]\n]++)(?P<close>\])"
)
_UNRESOLVED = regex.compile(r"(?P<open>\[)(?P<words>[^\[\]\n]++)(?P<close>\]\[[^\[\]\n]*+\])(?![\[(:])")
_DEFINITION = regex.compile(r"(?:\A|\n)[ \t]*+\[(?!\^)([^\[\]\n]++)\]:[ \t]*+(\S++)")
# References to footnotes, formulas, :names: of pictures, ++keys++.
_ATOM = regex.compile(
    r"\[\^[^\[\]\n]++\]|(?<!\w)\$(?=[^\s\d])[^$\n]{1,1000}+(?<=\S)\$(?!\w)|(?<![\w:]):[a-z][a-z0-9_+-]{1,63}+:(?![\w:])"
    r"|(?<!\w)\+\+\w++(?:[+-]\w++)*+\+\+(?!\w)"
)

_TAG = regex.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][^\s/>]*+)")

Rule = Callable[[StateInline, bool], bool]


def new_parser() -> MarkdownIt:
    """Return a parser for blocks whose `inline` records the position of each token."""
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_LEVELS + 2}).enable(["table", "strikethrough"])
    # These join texts, and would lose escapes and entities.
    parser.disable(["inline", "text_join", "fragments_join"])
    rules = {rule.name: rule.fn for rule in parser.inline.ruler.__rules__}
    for name in _RULES:
        parser.inline.ruler.at(name, _placing(name, rules[name]))
    parser.inline.ruler.before("text", "beyond", _beyond)
    parser.inline.ruler.after("link", "unresolved", partial(_in_parts, _UNRESOLVED))
    parser.core.ruler.before("block", "limit", _limit_tokens)
    parser.block.ruler.before("table", "limit", _limit_levels)
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


def _limit_levels(state: StateBlock, first_line: int, end_line: int, silent: bool) -> bool:
    """Raise `DocumentTooComplex` for a block that is nested too deep, in front of all rules, and match none."""
    if state.level >= _MAX_LEVELS:
        words = state.getLines(first_line, first_line + 1, state.blkIndent, False)
        raise DocumentTooComplex(
            f"quotations of a Markdown file may be nested {_MAX_LEVELS - 1} deep, and lists {_MAX_LEVELS // 2 - 1}. "
            f"The line that begins with {words[:40]!r} has more"
        )
    return False


def _beyond(state: StateInline, silent: bool) -> bool:
    """Match extensions of CommonMark, and code of templates."""
    if state.src[state.pos] in "{<" and (code := code_at(state.src, state.pos)) is not None:
        if not silent:
            state.push("atom" if code.is_value else "break", "", 0).meta[_SPAN] = (code.begin, code.end)
        state.pos = code.end
        return True
    if (atom := _ATOM.match(state.src, state.pos)) is not None:
        if not silent:
            state.push("atom", "", 0).meta[_SPAN] = atom.span()
        state.pos = atom.end()
        return True
    return any(_in_parts(pattern, state, silent) for pattern in (_BREAK, _MARKED))


def _in_parts(pattern: "regex.Pattern[str]", state: StateInline, silent: bool) -> bool:
    """Match markup with words inside, which are text."""
    match = pattern.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        is_tag = "open" in pattern.groupindex and match["open"] is not None
        borders = (match.start(), *(match.span("words") if match["words"] else ()), match.end())
        nesting: tuple[Literal[-1, 0, 1], ...] = (1, 0, -1) if is_tag else (0, 0, 0)
        for index, span in enumerate(pairwise(borders)):
            token = state.push("text" if index == 1 else "tag" if is_tag else "break", "", nesting[index])
            token.content = state.src[slice(*span)]
            token.meta[_SPAN] = span
        if token.content.endswith("[]"):  # the text names the address, and its translation would not
            token.meta[_WRITTEN] = f"][{match['words']}]"
    state.pos = match.end()
    return True


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


# The parser needs quadratic time for some paragraphs of emphasis and brackets.
_MAX_PARAGRAPH_CHARACTERS = 30_000
# Characters that may begin markup take the parser 20 us each. A list of links has one in fifteen.
_MARKS = "[*_~`<&\\"
_FREE_MARKS, _CHARACTERS_PER_MARK = 20_000, 20
_MAX_BYTES = 5_000_000
_MAX_LINES = 200_000  # the parser keeps some 200 bytes about each
_NO_BREAK = "\0"  # in place of a space; no text has it
_CELLS = ("th_open", "td_open")
_NAMED_LINK = re.compile(r"\[([^\[\]]{1,999})\]\[([^\[\]]{1,999})\]")


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, encoding: str | None = None) -> Rewrite:
    """Rewrite paragraphs, headings, list items, quotes and cells; not code, addresses, and data at the top."""
    limits = replace(limits, max_part_bytes=min(limits.max_part_bytes, _MAX_BYTES))
    text, found = read_text(source, limits, encoding)
    if (num_lines := text.count("\n")) > _MAX_LINES:
        raise DocumentTooComplex(f"a Markdown file may have {_MAX_LINES} lines. Given: {num_lines}")
    # The parser replaces line ends and NULs itself; done here, its positions fit.
    lines, line_end = with_one_line_end(text.replace("\0", "\ufffd"))
    is_held = limits.holds(len(text))
    written = _named_once((yield from rewritten(markdown_items(lines), _text_writer, _wrapped, is_held=is_held)), text)
    if sink is not None:
        sink.write(found.encode(text if written == lines else written.replace("\n", line_end)))


def markdown_items(text: str) -> Iterator[Item]:
    """Yield the file as items: everything but inline markup and HTML is a break. Raises `DocumentTooComplex`."""
    body = end_of_front_matter(text)
    lines = text[body:].split("\n")
    starts = [body]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    written, cursor = 0, body  # behind the last cell of a row begins the next
    is_cell = False
    parser = new_parser()
    references: dict[str, object] = {}
    tokens = parser.parse(text[body:], references)
    _add_definitions(tokens, references)
    _check_marks(tokens, len(text))
    for token in tokens:
        if token.type == "inline" and token.map and any(map(str.isalpha, token.content)):
            token.children = []
            parser.inline.parse(token.content, parser, references, token.children)
            places = _places(token.content, token.map[0], lines, starts, cursor, is_cell)
            if places:
                yield Item(Kind.BREAK, text[written : places[0][0]])
                yield from _with_line_breaks(inline_items(token), _gaps(text, places), is_cell)
                written = cursor = places[-1][1]
            token.children = None  # all tokens of the file are held until its end
        elif token.type == "html_block" and token.map and not token.level:
            begin, end = starts[token.map[0]], min(starts[token.map[1]], len(text))
            yield Item(Kind.BREAK, text[written:begin])
            yield from html_items(text[begin:end])
            yield Item(Kind.BREAK)
            written = cursor = end
        elif token.type == "html_block" and token.map:  # in a quote or a list: not all of its lines is HTML
            content = token.content.rstrip("\n")
            places = _places(content, token.map[0], lines, starts, cursor, is_cell=False)
            if places:
                yield Item(Kind.BREAK, text[written : places[0][0]])
                yield from _with_line_breaks([*html_items(content)], _gaps(text, places), is_cell=False)
                yield Item(Kind.BREAK)
                written = cursor = places[-1][1]
        is_cell = token.type in _CELLS
    yield Item(Kind.BREAK, text[written:])


def _add_definitions(tokens: Sequence[Token], references: dict[str, object]) -> None:
    """Add the addresses that are defined within paragraphs, such as behind a footnote, to those of the parser."""
    found = references.setdefault("references", {})
    assert isinstance(found, dict), "the parser has them by label"
    for token in tokens:
        for label, address in _DEFINITION.findall(token.content) if "]:" in token.content else ():
            found.setdefault(normalizeReference(label), {"title": "", "href": address})


def _check_marks(tokens: Sequence[Token], num_characters: int) -> None:
    """Raise `DocumentTooComplex` for paragraphs that take long to parse, before the first is parsed."""
    num_marks, max_marks = 0, _FREE_MARKS + num_characters // _CHARACTERS_PER_MARK
    for token in tokens:
        if token.type != "inline" or not token.map:
            continue
        if len(token.content) > _MAX_PARAGRAPH_CHARACTERS:
            raise DocumentTooComplex(
                f"a Markdown paragraph may have {_MAX_PARAGRAPH_CHARACTERS} characters. The paragraph in line "
                f"{token.map[0] + 1} has {len(token.content)} characters"
            )
        num_marks += sum(map(token.content.count, _MARKS))
        if num_marks > max_marks:
            raise DocumentTooComplex(
                f"a Markdown file of {num_characters} characters may have {max_marks} of {_MARKS} in its paragraphs. "
                f"It has more up to line {token.map[0] + 1}"
            )


def _named_once(written: str, source: str) -> str:
    """Write `[name][name]` as `[name]` or `[name][]`, as the source has it."""
    in_source = {link[0] for link in _NAMED_LINK.finditer(source)}

    def once(link: re.Match[str]) -> str:
        is_new = " ".join(link[1].split()) == link[2] and link[0] not in in_source
        if not is_new:
            return link[0]
        return f"[{link[1]}][]" if f"[{link[2]}][]" in source else f"[{link[1]}]"

    return _NAMED_LINK.sub(once, written)


def _gaps(text: str, places: Sequence[tuple[int, int]]) -> list[str]:
    """Return what stands in the file between two lines of a token, such as a line end and the `> ` of a quote."""
    return [text[end:start] for (_, end), (start, _) in pairwise(places)]


def _places(
    content_of_token: str, first_line: int, lines: Sequence[str], starts: Sequence[int], cursor: int, is_cell: bool
) -> list[tuple[int, int]]:
    """Return begin and end of each line of a token's content in the file; empty if a line is not found."""
    places = []
    for number, content in enumerate(content_of_token.split("\n"), start=first_line):
        if number >= len(lines):
            return []
        if is_cell:
            content = content.replace("|", "\\|")
            column = lines[number].find(content, max(0, cursor - starts[number]))
        else:
            column = lines[number].rfind(content)
        if column < 0 or starts[number] + column < cursor:
            return []
        places.append((starts[number] + column, starts[number] + column + len(content)))
    return places


def _with_line_breaks(items: Sequence[Item], gaps: Sequence[str], is_cell: bool) -> Iterator[Item]:
    """Replace "\\n" in items by the text between the lines of the file, such as the `> ` of a quote."""
    remaining = iter(gaps)
    for item in items:
        raw = item.raw.replace("|", "\\|") if is_cell else item.raw
        if raw is item.raw and "\n" not in raw:
            yield item
            continue
        first, *others = raw.split("\n")
        yield item._replace(raw=first + "".join(next(remaining) + line for line in others))


def _text_writer(unit: Unit) -> WriteText:
    """Write texts with the escapes and entities of their source."""
    texts = [item for item in unit.items if item.kind is Kind.TEXT]
    escapes: dict[str, str | int | None] = {
        item.text: item.raw for item in texts if len(item.text) == 1 and item.raw not in (item.text, "\n")
    }
    escapes.pop(" ", None)  # line breaks
    if any("\\|" in item.raw and "|" in item.text for item in texts):
        escapes["|"] = "\\|"
    table = str.maketrans(escapes)
    return (lambda text: text.translate(table)) if table else str


def _wrapped(unit: Unit, written: str) -> str:
    """Wrap a translation into lines as long as the longest of its source, if the source has several."""
    line_break = next((item.raw for item in unit.items if item.text == " " and "\n" in item.raw), None)
    if line_break is None:
        return written
    # Markup stays in one line: an address in < > may not have a line break, a formula would not be one.
    for markup in {item.raw for item in unit.items if item.kind is not Kind.TEXT and " " in item.raw}:
        written = written.replace(markup, markup.replace(" ", _NO_BREAK))
    width = max(map(len, "".join(item.raw for item in unit.items).split("\n")))
    return rewrap(written.split(" "), width, line_break).replace(_NO_BREAK, " ")
