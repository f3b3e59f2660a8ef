"""HTML pages: parsed as browsers do, and written again with every element, attribute and comment."""

import contextlib
import html
import re
from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from server.documents.fragment import Rewrite
from server.documents.input.encoding import Encoding, codec_of, detect, read_part
from server.documents.input.limits import FileLimits
from server.documents.markup.html_elements import is_void, role_in_html
from server.documents.markup.items import Item, Kind, Role, rewritten, write_text
from server.interface.errors import InvalidDocument

_WHITE_SPACE = re.compile(r"[ \t\r\n\f]+")
_PRESCAN_BYTES = 1024  # in which browsers look for a declaration of the encoding
_KEEP_FIRST_LINE_BREAK = ("pre", "textarea", "listing")  # parsers swallow one behind the start tag
_DOCTYPE = "<!doctype"


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """The text of every block. Attributes, scripts, styles, code and `translate="no"` are left alone."""
    content = read_part(source, limits)
    encoding = _encoding(content)
    text = yield from rewritten(html_items(encoding.decode(content)), write_text)
    if sink is not None:
        sink.write(encoding.mark + text.encode(encoding.codec, "xmlcharrefreplace"))


def html_items(text: str) -> list[Item]:
    """The page as items. What a browser would add (html, head, body) is there too. Raises `InvalidDocument`."""
    _check_depth(text)
    root = LexborHTMLParser(text).root
    document = root.parent if root is not None else None
    if document is None:
        raise InvalidDocument("the page is empty")
    return list(_walk(document, _doctype(text)))


def _check_depth(text: str) -> None:
    """Refuse what is nested so deeply that browsers' way of parsing takes time quadratic in the depth."""
    parser = etree.HTMLParser(huge_tree=False, no_network=True)
    with contextlib.suppress(etree.XMLSyntaxError):  # only the depth is of interest, and it is in the log
        etree.fromstring(text.encode("utf-8", "replace"), parser)
    if too_deep := [entry for entry in parser.error_log if "xcessive depth" in entry.message]:
        raise InvalidDocument(f"the page is nested more than 256 deep in line {too_deep[0].line}")


def _encoding(content: bytes) -> Encoding:
    """By its mark, as UTF-8 if it is that, else as it declares."""
    found = detect(content)
    if found.mark:
        return found
    try:
        content.decode()
    except UnicodeDecodeError:
        codec = codec_of(_declared(LexborHTMLParser(content[:_PRESCAN_BYTES].decode("latin-1"))))
        # A page whose declaration could be read as ASCII is not UTF-16, says the HTML standard, too.
        return found if codec is None or codec.startswith(("utf-16", "utf-32")) else Encoding(codec)
    return found


def _declared(page: LexborHTMLParser) -> str:
    for meta in page.css("meta"):
        if charset := meta.attributes.get("charset"):
            return charset
        if (meta.attributes.get("http-equiv") or "").lower() == "content-type":
            return (meta.attributes.get("content") or "").partition("charset=")[2].strip()
    return ""


def _doctype(text: str) -> str:
    """The document type as it was written: it decides how browsers lay the page out."""
    start = text.lower().find(_DOCTYPE)
    return text[start : text.find(">", start) + 1]


def _walk(document: LexborNode, doctype: str) -> Iterator[Item]:
    """Without recursion: pages may be nested deeper than Python's stack."""
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
