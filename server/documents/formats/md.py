"""Markdown: parsed as CommonMark with tables, and written again byte for byte where nothing was translated."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import BinaryIO

from markdown_it.token import Token

from server.documents.formats.html import html_items
from server.documents.fragment import Rewrite
from server.documents.input.encoding import read_text
from server.documents.input.limits import FileLimits
from server.documents.markup.inline_markdown import inline_items, new_parser
from server.documents.markup.item_rewriting import WriteText, rewritten
from server.documents.markup.items import Item, Kind
from server.documents.markup.line_wrapping import rewrap, with_one_line_end
from server.documents.markup.template_code import end_of_front_matter
from server.documents.markup.units import Unit
from server.interface.errors import DocumentTooComplex

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
    _check_marks(tokens, len(text))
    for token in tokens:
        if token.type == "inline" and token.map and any(map(str.isalpha, token.content)):
            token.children = []
            parser.inline.parse(token.content, parser, references, token.children)
            places = _places(token, lines, starts, cursor, is_cell)
            if places:
                yield Item(Kind.BREAK, text[written : places[0][0]])
                gaps = [text[end:start] for (_, end), (start, _) in pairwise(places)]
                yield from _with_line_breaks(inline_items(token), gaps, is_cell)
                written = cursor = places[-1][1]
            token.children = None  # all tokens of the file are held until its end
        elif token.type == "html_block" and token.map and not token.level:
            begin, end = starts[token.map[0]], min(starts[token.map[1]], len(text))
            yield Item(Kind.BREAK, text[written:begin])
            yield from html_items(text[begin:end])
            yield Item(Kind.BREAK)
            written = cursor = end
        is_cell = token.type in _CELLS
    yield Item(Kind.BREAK, text[written:])


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
    """Write `[name][name]` as `[name]`, unless the source has it twice."""
    in_source = {link[0] for link in _NAMED_LINK.finditer(source)}

    def once(link: re.Match[str]) -> str:
        is_new = " ".join(link[1].split()) == link[2] and link[0] not in in_source
        return f"[{link[1]}]" if is_new else link[0]

    return _NAMED_LINK.sub(once, written)


def _places(
    token: Token, lines: Sequence[str], starts: Sequence[int], cursor: int, is_cell: bool
) -> list[tuple[int, int]]:
    """Return begin and end of each line of an inline token in the file; empty if a line is not found."""
    assert token.map is not None
    places = []
    for number, content in enumerate(token.content.split("\n"), start=token.map[0]):
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
