"""XML from strangers: parsed without entities, without the network, and written again as it was declared."""

from typing import NoReturn, cast
from xml.parsers import expat  # stops at the root element here, and expands nothing

from lxml import etree

from server.interface.errors import InvalidDocument

_FIRST_BYTES = 4096


class _RootReached(Exception):
    """Behind this, no entity can be declared any more."""


def check_prolog(content: bytes, name: str, allow_doctype: bool = False) -> None:
    """Refuse entity declarations, and document types too unless they are allowed; reads up to the root element.

    Raises `InvalidDocument`, with the `name` of the file.
    """
    parser = expat.ParserCreate()

    def refuse_entity(entity: str, *_: object) -> NoReturn:
        raise InvalidDocument(f"{name} declares the XML entity {entity[:60]!r}; documents with entities are refused")

    def on_doctype(_name: str, _system: str | None, _public: str | None, _has_internal_subset: bool) -> None:
        if not allow_doctype:
            raise InvalidDocument(f"{name} has a document type declaration, which such a file never has")

    def on_root(_name: str, _attributes: dict[str, str]) -> NoReturn:
        raise _RootReached

    parser.EntityDeclHandler = refuse_entity
    parser.UnparsedEntityDeclHandler = refuse_entity
    parser.StartDoctypeDeclHandler = on_doctype
    parser.StartElementHandler = on_root
    try:
        for start in range(0, len(content), _FIRST_BYTES):
            parser.Parse(content[start : start + _FIRST_BYTES], False)
    except _RootReached:
        return
    except expat.ExpatError as error:
        raise InvalidDocument(f"{name} is not XML: {error}") from error
    raise InvalidDocument(f"{name} is not XML: there is no element in it")


def parse(content: bytes, name: str, allow_doctype: bool = False) -> etree._ElementTree:
    """The document of `content`; raises `InvalidDocument`, with the `name` of the file, for what is unfit or unsafe."""
    check_prolog(content, name, allow_doctype)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_blank_text=False,
        strip_cdata=False,
    )  # fmt: skip
    try:
        return etree.fromstring(content, parser).getroottree()
    except etree.XMLSyntaxError as error:
        raise InvalidDocument(f"{name} is not well-formed XML: {error.msg}") from error


def serialized(tree: etree._ElementTree) -> bytes:
    """The document with the declaration it had."""
    return encoded(tree, tree.docinfo.encoding or "UTF-8")


def encoded(tree: etree._ElementTree, encoding: str) -> bytes:
    """The document in this encoding, and declared so."""
    # None, for a document that does not say, is as good as True and False; the stubs do not know it.
    standalone = cast(bool, tree.docinfo.standalone)
    return cast(bytes, etree.tostring(tree, encoding=encoding, xml_declaration=True, standalone=standalone))


def fit_for_xml(text: str) -> str:
    """The text without characters that XML cannot hold (https://www.w3.org/TR/xml/#charsets)."""
    return "".join(filter(_is_allowed, text)) if not text.isprintable() else text


def _is_allowed(character: str) -> bool:
    code = ord(character)
    return character in "\t\n\r" or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
