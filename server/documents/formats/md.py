"""Markdown: parsed as CommonMark with tables, and written again byte for byte where nothing was translated."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import BinaryIO

from markdown_it.token import Token

from server.documents.fragment import Rewrite
from server.documents.input.encoding import read_text
from server.documents.input.limits import FileLimits
from server.documents.markup.inline_markdown import inline_items, new_parser
from server.documents.markup.item_rewriting import WriteText, rewritten
from server.documents.markup.items import Item, Kind
from server.documents.markup.line_wrapping import rewrap
from server.documents.markup.units import Unit
from server.interface.errors import DocumentTooComplex, InvalidDocument

# Emphasis and brackets can be written so that finding their ends takes time quadratic in the length of a paragraph.
_MAX_PARAGRAPH_CHARACTERS = 30_000
_MAX_BYTES = 5_000_000
_MAX_LINES = 200_000  # the parser keeps some 200 bytes about each
_FENCE = "---\n"  # around YAML at the top of the file
_CELLS = ("th_open", "td_open")
_NAMED_LINK = re.compile(r"\[([^\[\]]{1,999})\]\[([^\[\]]{1,999})\]")


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Paragraphs, headings, list items, quotes and cells; not code, HTML, addresses, and YAML at the top."""
    text, encoding = read_text(source, replace(limits, max_part_bytes=min(limits.max_part_bytes, _MAX_BYTES)))
    if (num_lines := text.count("\n")) > _MAX_LINES:
        raise DocumentTooComplex(f"a Markdown file may have {_MAX_LINES} lines. Given: {num_lines}")
    line_end = "\r\n" if "\r\n" in text else "\n"
    # As the parser reads it.
    items = markdown_items(text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd"))
    written = _named_once((yield from rewritten(items, _text_writer, _wrapped)), text)
    if sink is not None:
        sink.write(encoding.encode(written.replace("\n", line_end)))


def markdown_items(text: str) -> Iterator[Item]:
    """The file as items: whatever is not inline is a break."""
    body = _end_of_front_matter(text)
    lines = text[body:].split("\n")
    starts = [body]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    written, cursor = 0, body  # cells of a row stand behind each other
    is_cell = False
    parser = new_parser()
    references: dict[str, object] = {}
    for token in parser.parse(text[body:], references):
        if token.type == "inline" and token.map and token.content:
            if len(token.content) > _MAX_PARAGRAPH_CHARACTERS:
                raise InvalidDocument(
                    f"the paragraph in line {token.map[0] + 1} has {len(token.content)} characters; "
                    f"in Markdown it may have {_MAX_PARAGRAPH_CHARACTERS}"
                )
            token.children = []
            parser.inline.parse(token.content, parser, references, token.children)
            places = _places(token, lines, starts, cursor, is_cell)
            if places:
                yield Item(Kind.BREAK, text[written : places[0][0]])
                gaps = [text[end:start] for (_, end), (start, _) in pairwise(places)]
                yield from _with_line_breaks(inline_items(token), gaps, is_cell)
                written = cursor = places[-1][1]
            token.children = None  # all tokens of the file are held until its end
        is_cell = token.type in _CELLS
    yield Item(Kind.BREAK, text[written:])


def _named_once(written: str, source: str) -> str:
    """What is written, where links whose text is still the name of their address do not have it twice."""
    as_they_were = {link[0] for link in _NAMED_LINK.finditer(source)}

    def once(link: re.Match[str]) -> str:
        is_new = " ".join(link[1].split()) == link[2] and link[0] not in as_they_were
        return f"[{link[1]}]" if is_new else link[0]

    return _NAMED_LINK.sub(once, written)


def _end_of_front_matter(text: str) -> int:
    end = text.find("\n" + _FENCE, len(_FENCE) - 1) if text.startswith(_FENCE) else -1
    return 0 if end < 0 else end + 1 + len(_FENCE)


def _places(
    token: Token, lines: Sequence[str], starts: Sequence[int], cursor: int, is_cell: bool
) -> list[tuple[int, int]]:
    """Where each line of an inline token begins and ends in the file; nothing if one is not found."""
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
    """The items with what stands between the lines of the file, such as the `> ` of a quote, in place of "\\n"."""
    remaining = iter(gaps)
    for item in items:
        raw = item.raw.replace("|", "\\|") if is_cell else item.raw
        if raw is item.raw and "\n" not in raw:
            yield item
            continue
        first, *others = raw.split("\n")
        yield replace(item, raw=first + "".join(next(remaining) + line for line in others))


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
    """A written translation filled into lines, if its source was, as long as the longest of the source."""
    line_break = next((item.raw for item in unit.items if item.text == " " and "\n" in item.raw), None)
    if line_break is None:
        return written
    return rewrap(written.split(" "), max(map(len, "".join(item.raw for item in unit.items).split("\n"))), line_break)
