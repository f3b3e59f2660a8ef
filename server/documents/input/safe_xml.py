"""Untrusted XML: parsed without entities and without the network, and written as it was declared."""

import codecs
import re
from typing import NoReturn
from xml.parsers import expat  # stops at the root element here and expands nothing

from lxml import etree

from server.interface.errors import InvalidDocument

_FIRST_BYTES = 4096
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BEGINNING = re.compile(r"\ufeff?(?:<\?xml\s[^>]*\?>\s*)?")  # byte order mark and declaration


class _RootReached(Exception):
    """The root element begins: no entity can be declared behind it."""


def check_prolog(content: bytes, name: str, allow_doctype: bool = False) -> str:
    """Reject entity declarations, and document types unless they are allowed; reads up to the root element.

    Returns the encoding in upper case. Raises `InvalidDocument` with the `name` of the file.
    """
    parser = expat.ParserCreate()
    encoding = "UTF-16" if content.startswith(_UTF16_MARKS) else "UTF-8"

    def on_declaration(_version: str, declared: str | None, _standalone: int) -> None:
        nonlocal encoding
        encoding = (declared or encoding).upper()

    def reject_entity(entity: str, *_: object) -> NoReturn:
        raise InvalidDocument(f"{name} declares the XML entity {entity[:60]!r}; remove all entity declarations")

    def on_doctype(_name: str, _system: str | None, _public: str | None, _has_internal_subset: bool) -> None:
        if not allow_doctype:
            raise InvalidDocument(f"{name} has a document type declaration, which this format does not allow")

    def on_root(_name: str, _attributes: dict[str, str]) -> NoReturn:
        raise _RootReached

    parser.XmlDeclHandler = on_declaration
    parser.EntityDeclHandler = reject_entity
    parser.UnparsedEntityDeclHandler = reject_entity
    parser.StartDoctypeDeclHandler = on_doctype
    parser.StartElementHandler = on_root
    try:
        for start in range(0, len(content), _FIRST_BYTES):
            parser.Parse(content[start : start + _FIRST_BYTES], False)
    except _RootReached:
        return encoding
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: a declared encoding that is unknown
        raise InvalidDocument(f"{name} is not XML: {error}") from error
    raise InvalidDocument(f"{name} is not XML: it has no element")


def check(content: bytes, name: str) -> None:
    """Raise `InvalidDocument` as `parse` does for XML without a document type; builds no tree."""
    check_prolog(content, name)
    try:
        expat.ParserCreate().Parse(content, True)
    except expat.ExpatError as error:
        raise InvalidDocument(f"{name} is not well-formed XML: {error}") from error


def parse(content: bytes, name: str, allow_doctype: bool = False) -> etree._ElementTree:
    """Parse `content`; raises `InvalidDocument` with the `name` of the file for malformed or unsafe XML.

    Raises MemoryError if there is no memory for the tree.
    """
    check_prolog(content, name, allow_doctype)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_blank_text=False,
        strip_cdata=False,
    )  # fmt: skip
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        if getattr(error, "code", 0) == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from error
        raise InvalidDocument(f"{name} is not well-formed XML: {error.msg}") from error
    # An error for the library, unless a warning follows; but it creates no elements in such a namespace.
    if invalid := parser.error_log.filter_types(etree.ErrorTypes.WAR_NS_URI):
        raise InvalidDocument(f"{name} is not well-formed XML: {invalid[0].message}")
    return root.getroottree()


def serialized(tree: etree._ElementTree, content: bytes) -> bytes:
    """Write the document with the declaration, encoding and line ends of `content`, from which it was parsed."""
    encoding = tree.docinfo.encoding or "UTF-8"
    if content.startswith((codecs.BOM_UTF16_LE, b"<\0")):
        encoding = "UTF-16LE"
    elif content.startswith((codecs.BOM_UTF16_BE, b"\0<")):
        encoding = "UTF-16BE"
    source = content.decode(encoding, "replace")
    beginning = _BEGINNING.match(source)
    assert beginning is not None  # it may be empty
    written = etree.tostring(tree, encoding="unicode")
    num_lines = source.count("\n", beginning.end())
    if num_lines and source.count("\r\n", beginning.end()) == num_lines:  # the parser reads them as \n
        written = written.replace("\n", "\r\n")
    end = source[len(source.rstrip()) :]
    return (beginning[0] + written + end).encode(encoding, "xmlcharrefreplace")


def in_utf8(tree: etree._ElementTree) -> bytes:
    """Write the document in UTF-8, and declare it."""
    return etree.tostring(tree, encoding="UTF-8", xml_declaration=True)


def fit_for_xml(text: str) -> str:
    """Remove characters that XML cannot contain (https://www.w3.org/TR/xml/#charsets)."""
    return "".join(filter(_is_allowed, text)) if not text.isprintable() else text


def _is_allowed(character: str) -> bool:
    code = ord(character)
    return character in "\t\n\r" or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
