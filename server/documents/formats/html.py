"""HTML pages: parsed like a browser does, and written again with every element, attribute and comment."""

import contextlib
import html
import re
from collections.abc import Iterator
from typing import BinaryIO

import regex
from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from server.documents.fragment import Rewrite
from server.documents.input.encoding import Encoding, codec_of, detect, has_mark, read_part
from server.documents.input.limits import FileLimits
from server.documents.markup.declared_language import with_language
from server.documents.markup.html_elements import is_void, role_in_html
from server.documents.markup.item_rewriting import escaped_texts, rewritten
from server.documents.markup.items import Item, Kind, Role
from server.documents.markup.line_wrapping import with_one_line_end
from server.documents.markup.page_cost import check_page_cost
from server.interface.errors import DocumentTooComplex, InvalidDocument

_WHITE_SPACE = re.compile(r"[ \t\r\n\f]+")
_PRESCAN_BYTES = 1024  # in which browsers look for a declaration of the encoding
_KEEP_FIRST_LINE_BREAK = ("pre", "textarea", "listing")  # parsers remove one behind the start tag
_DOCTYPE = "<!doctype"
_END_OF_HEAD = re.compile(r"</head\s*>", re.IGNORECASE)
_NOSCRIPT = regex.compile(r"<noscript[\s>](?:[^<]++|<(?!/?noscript))*+</noscript\s*+>", regex.IGNORECASE)
_HIDDEN = re.compile(r'<meta name="hidden-noscript-([0-9]{1,9})">')

# Items and characters that a page may become: repair by the parser repeats elements. Twice the largest of real pages.
_ITEMS_PER_CHARACTER = 1
_GROWTH = 8
_FREE_ITEMS = 100_000


def rewrite(
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    encoding: str | None = None,
    language: str | None = None,
) -> Rewrite:
    """Rewrite the text of every block. Attributes, scripts, styles, code and `translate="no"` stay.

    Attributes that declare the language of the page then declare `language`.
    """
    content = read_part(source, limits)
    found = detect(content, encoding) if encoding is not None else _encoding(content)
    page = found.decode(content)
    if (num_tags := page.count("<")) > limits.max_tags:
        raise DocumentTooComplex(f"a page may have {limits.max_tags} tags. Given: {num_tags}")
    page, line_end = with_one_line_end(page)  # the parser reads all of them as \n
    page, hidden = _with_hidden_noscript(page)
    items = with_language(html_items(page), language)
    is_held = limits.holds(len(page))
    text = yield from rewritten(_bounded(items, len(page)), escaped_texts, is_held=is_held)
    if sink is not None:
        if hidden:
            text = _HIDDEN.sub(lambda place: hidden[int(place[1])], text)
        sink.write(found.mark + text.replace("\n", line_end).encode(found.codec, "xmlcharrefreplace"))


def _with_hidden_noscript(page: str) -> tuple[str, list[str]]:
    """Return the page with a `meta` in place of each `noscript` in its head, and these elements.

    For browsers with scripts they are text. The parser reads them as one without: a picture there would end the head.
    """
    end = _END_OF_HEAD.search(page)
    if end is None or _HIDDEN.search(page) is not None:
        return page, []
    elements: list[str] = []

    def hide(element: regex.Match[str]) -> str:
        elements.append(element[0])
        return f'<meta name="hidden-noscript-{len(elements) - 1}">'

    return _NOSCRIPT.sub(hide, page[: end.start()]) + page[end.start() :], elements


def html_items(text: str) -> Iterator[Item]:
    """Yield the page as items, with the elements that a browser adds (html, head, body).

    Raises `InvalidDocument` and `DocumentTooComplex`, and MemoryError if there is no memory for the tree.
    """
    check_page_cost(text)
    _check_depth(text)
    try:
        root = LexborHTMLParser(text).root
    except SelectolaxError as error:  # there is no malformed HTML: only memory can be missing
        raise MemoryError from error
    document = root.parent if root is not None else None
    if document is None:
        raise InvalidDocument("the page is empty")
    yield from _walk(document, _doctype(text))


def _bounded(items: Iterator[Item], num_characters: int) -> Iterator[Item]:
    """Yield the items; raises `DocumentTooComplex` if they become far more than the page."""
    max_items = _FREE_ITEMS + _ITEMS_PER_CHARACTER * num_characters
    max_raw = _GROWTH * (_FREE_ITEMS + num_characters)
    num_raw = 0
    for num_items, item in enumerate(items, start=1):
        num_raw += len(item.raw)
        if num_items > max_items or num_raw > max_raw:
            raise DocumentTooComplex(
                f"the page has {num_characters} characters and becomes more than {max_items} pieces of markup or "
                f"{max_raw} characters when a browser completes it; close the elements that it leaves open"
            )
        yield item


def _check_depth(text: str) -> None:
    """Reject deep nesting: browsers' way of parsing takes time quadratic in the depth."""
    parser = etree.HTMLParser(huge_tree=False, no_network=True)
    with contextlib.suppress(etree.XMLSyntaxError):  # only the depth matters here, and it is in the log
        etree.fromstring(text.encode("utf-8", "replace"), parser)
    if too_deep := [entry for entry in parser.error_log if "xcessive depth" in entry.message]:
        raise InvalidDocument(f"a page may be nested 256 deep. Line {too_deep[0].line} is deeper")


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


def _doctype(text: str) -> str:
    """Return the document type as written: it decides how browsers lay the page out."""
    start = text.lower().find(_DOCTYPE)
    return text[start : text.find(">", start) + 1]


def _walk(document: LexborNode, doctype: str) -> Iterator[Item]:
    """Yield the items of a tree, without recursion: pages may be nested deeper than Python's stack."""
    preformatted = 0
    open_elements: list[tuple[str, Role]] = []
    node = document.first_child
    while node is not None:
        if node.is_text_node:
            text = node.text_content or ""
            visible = text if preformatted else _WHITE_SPACE.sub(" ", text)
            yield Item(Kind.TEXT, _escaped(text), visible)
        elif node.tag == "-doctype":
            yield Item(Kind.BREAK, doctype)
        elif not node.is_element_node:
            yield Item(Kind.MARK, node.html or "")
        else:
            name = node.tag or ""
            role = role_in_html(name, {key: value or "" for key, value in node.attributes.items()})
            first = node.first_child
            if role in (Role.ATOM, Role.BREAK):
                text = (
                    _WHITE_SPACE.sub(" ", node.text() or "") if name in ("code", "kbd", "samp", "var", "span") else ""
                )
                yield Item(Kind.ATOM if role is Role.ATOM else Kind.BREAK, node.html or "", text.strip())
            elif is_void(name):
                yield Item(Kind.MARK if role is Role.MARK else Kind.BREAK, _start_tag(node))
            else:
                kind = Kind.BREAK if role is Role.BLOCK else Kind.OPEN
                yield Item(kind, _start_tag(node), is_soft=role is Role.SOFT)
                open_elements.append((name, role))
                preformatted += name == "pre"
                if first is not None:
                    node = first
                    continue
                yield _end_of(*open_elements.pop())
                preformatted -= name == "pre"
        while node.next is None:
            if not open_elements or node.parent is None:
                return
            node = node.parent
            name, role = open_elements.pop()
            preformatted -= name == "pre"
            yield _end_of(name, role)
        node = node.next


def _end_of(name: str, role: Role) -> Item:
    return Item(Kind.BREAK if role is Role.BLOCK else Kind.CLOSE, f"</{name}>", is_soft=role is Role.SOFT)


def _start_tag(node: LexborNode) -> str:
    attributes = "".join(
        f" {name}" if value is None else f' {name}="{value.replace("&", "&amp;").replace(chr(34), "&quot;")}"'
        for name, value in node.attributes.items()
    )
    tag = f"<{node.tag}{attributes}>"
    first = node.first_child
    if node.tag in _KEEP_FIRST_LINE_BREAK and first is not None and (first.text_content or "").startswith("\n"):
        tag += "\n"
    return tag


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")
