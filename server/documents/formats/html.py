"""HTML pages and parts of pages: every character that is not text stays as it is written."""

import html
import re
from collections.abc import Generator, Iterator, Sequence
from itertools import groupby
from typing import BinaryIO

import regex
from selectolax.lexbor import LexborHTMLParser

from server.documents.fragment import Fragment, Rewrite
from server.documents.input.encoding import Encoding, codec_of, detect, has_mark, read_part
from server.documents.input.limits import FileLimits
from server.documents.markup.html_elements import name_in_text, role_in_html, with_language
from server.documents.markup.items import Item, Kind, Role, escaped_texts, rewritten, text_items
from server.documents.markup.template_code import TemplateCode, end_of_front_matter, template_code, without_code
from server.interface.errors import DocumentTooComplex
from server.text.readers import pieces
from server.text.readers.html import read_html
from server.text.readers.pieces import NO_MARKUP_OPTIONS

_PRESCAN_BYTES = 1024  # in which browsers look for a declaration of the encoding
_NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
_PREFORMATTED = re.compile(r"(<pre\b[^>]*>)(.*)(</pre\s*>)", re.IGNORECASE | re.DOTALL)
# A start tag and the text behind it up to the next tag, of an element without an end; not one whose content is no HTML.
_UNCLOSED = regex.compile(
    r"(?P<begin><(?!(?:iframe|noembed|noframes|plaintext|script|style|textarea|title|xmp)\b)(?P<name>[a-z][^\s/>]*+)"
    r"(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+>[^<]*+)<.*(?<!</(?P=name)\s*>)",
    regex.IGNORECASE | regex.DOTALL,
)
_MAX_UNCLOSED = 20  # each lets the rest of the page be read again
_TAG = re.compile(r"<[^>]*>")
_LINE_END = re.compile(r"(\r\n|\r|\n|\t+| {2,})")  # of preformatted text, or the end of a column
_TEXTS = (pieces.Role.TEXT, pieces.Role.REFERENCE)


def rewrite(
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    encoding: str | None = None,
    language: str | None = None,
) -> Rewrite:
    """Rewrite the text of every block. Tags, attributes, scripts, styles, code of templates and comments stay.

    Attributes that declare the language of the page then declare `language`.
    """
    content = read_part(source, limits)
    found = detect(content, encoding) if encoding is not None else _encoding(content)
    written = yield from rewritten_page(content, found, language, limits, is_held=limits.holds(len(content)))
    if sink is not None:
        sink.write(written)


def rewritten_page(
    content: bytes, encoding: Encoding | None, language: str | None, limits: FileLimits, *, is_held: bool
) -> Generator[list[Fragment], list[Fragment], bytes]:
    """Yield the texts of a page as fragments, receive their translations, and return the page with them.

    Without an `encoding`, it is the one that the page declares, or that its bytes are in.
    """
    if (num_tags := content.count(b"<")) > limits.max_tags:
        raise DocumentTooComplex(f"a page may have {limits.max_tags} tags. Given: {num_tags}")
    found = encoding or _encoding(content)
    items = with_language(html_items(found.decode(content)), language)
    text = yield from rewritten(items, escaped_texts, is_held=is_held)
    return found.mark + text.encode(found.codec, "xmlcharrefreplace")


def html_items(page: str, *, reads_preformatted: bool = True) -> Iterator[Item]:
    """Yield the page as items; joined, their `raw` is the page. Lines of preformatted text are paragraphs, and
    so are its columns."""
    position = end_of_front_matter(page)
    if position:
        yield Item(Kind.BREAK, page[:position])
    codes = list(template_code(page))
    readable = without_code(page, codes) if codes else page
    for _ in range(_MAX_UNCLOSED):
        if position == len(page):
            return
        items = _items_from(position, page, readable, codes, reads_preformatted=reads_preformatted)
        position = yield from items
    if position < len(page):
        yield Item(Kind.BREAK, page[position:])


def _items_from(
    position: int, page: str, readable: str, codes: Sequence[TemplateCode], *, reads_preformatted: bool
) -> Generator[Item, None, int]:
    """Yield the items behind a position up to an element without an end, and return where they end.

    The reader keeps such an element, which is not translated, with all of the page behind it: a lost end tag would
    leave the rest of the page in the language of the source.
    """
    # In reverse order: those that lie ahead, without those that are part of a tag.
    remaining = [code for code in reversed(codes) if code.begin >= position]
    for is_text, group in groupby(read_html(readable[position:], NO_MARKUP_OPTIONS), lambda each: each.role in _TEXTS):
        if is_text:
            end = position + sum(len(piece.raw) for piece in group)
            while remaining and remaining[-1].begin < position:
                remaining.pop()
            yield from _text_items(page, position, end, remaining)
            position = end
            continue
        for piece in group:
            end = position + len(piece.raw)
            raw = page[position:end]
            block = _PREFORMATTED.fullmatch(raw) if reads_preformatted and raw[:4].lower() == "<pre" else None
            if end == len(page) and (unclosed := _UNCLOSED.fullmatch(piece.raw)) is not None:
                yield Item(Kind.BREAK, page[position : position + unclosed.end("begin")])
                return position + unclosed.end("begin")
            yield from [_markup_item(piece.role, raw)] if block is None else _preformatted_items(*block.groups())
            position = end
    return position


def _text_items(page: str, position: int, end: int, remaining: list[TemplateCode]) -> Iterator[Item]:
    while remaining and remaining[-1].begin < end:
        code = remaining.pop()
        yield from text_items(page[position : code.begin])
        raw = page[code.begin : code.end]
        yield Item(Kind.ATOM, raw, raw) if code.is_value else Item(Kind.BREAK, raw)
        position = code.end
    yield from text_items(page[position:end])


def _markup_item(role: pieces.Role, raw: str) -> Item:
    name = _NAME.match(raw)
    # Without a name: a comment, or what a browser reads as one.
    own_role = Role.ATOM if name is None else role_in_html(name[1].lower(), {})
    if role is pieces.Role.PROTECTED:
        return Item(Kind.ATOM, raw, html.unescape(_TAG.sub("", raw)).strip())
    if role is pieces.Role.BORDER or own_role is Role.BLOCK:
        return Item(Kind.BREAK, raw)
    if own_role is Role.MARK:
        return Item(Kind.MARK, raw)
    kind = {pieces.Role.OPENING: Kind.OPEN, pieces.Role.CLOSING: Kind.CLOSE}.get(role, Kind.ATOM)
    return Item(kind, raw, is_soft=own_role is Role.SOFT, name=name_in_text(name[1].lower()) if name else "")


def _preformatted_items(start_tag: str, content: str, end_tag: str) -> Iterator[Item]:
    yield Item(Kind.BREAK, start_tag)
    for item in html_items(content, reads_preformatted=False):
        if item.kind is not Kind.TEXT:
            yield item
            continue
        for index, line in enumerate(_LINE_END.split(item.raw)):
            yield from [Item(Kind.BREAK, line)] if index % 2 else text_items(line)
    yield Item(Kind.BREAK, end_tag)


def _encoding(content: bytes) -> Encoding:
    """Return the encoding: by its mark, else UTF-8 if the bytes are that, else as declared, else detected."""
    try:
        content.decode()
    except UnicodeDecodeError:
        codec = codec_of(_declared(LexborHTMLParser(content[:_PRESCAN_BYTES].decode("latin-1"))))
        # A page whose declaration could be read as ASCII is not UTF-16, by the HTML standard.
        if codec is not None and not codec.startswith(("utf-16", "utf-32")) and not has_mark(content):
            return Encoding(codec)
    return detect(content)


def _declared(page: LexborHTMLParser) -> str:
    for meta in page.css("meta"):
        if charset := meta.attributes.get("charset"):
            return charset
        if (meta.attributes.get("http-equiv") or "").lower() == "content-type":
            return (meta.attributes.get("content") or "").partition("charset=")[2].strip()
    return ""
