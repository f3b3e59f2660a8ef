import pytest

from server.documents.input import safe_xml
from server.interface.errors import InvalidDocument


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"<a/>", "UTF-8"),
        (b"\xef\xbb\xbf<a/>", "UTF-8"),
        (b'<?xml version="1.0" encoding="iso-8859-1"?><a/>', "ISO-8859-1"),
        ("<a/>".encode("utf-16"), "UTF-16"),
        (b"<!-- " + b"x" * 9000 + b" --><a/>", "UTF-8"),
    ],
)
def test_the_encoding_is_the_declared_one_or_that_of_the_mark(content: bytes, encoding: str) -> None:
    assert safe_xml.check_prolog(content, "x.xml") == encoding


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a/>', "x.xml declares the XML entity 'b'|document type"),
        (b"<!DOCTYPE a><a/>", "x.xml has a document type declaration"),
        (b"", "x.xml is not XML: it has no element"),
        (b"<a><b></a>", "x.xml is not well-formed XML"),
        (b'<?xml version="1.0" encoding="none"?><a/>', "x.xml is not XML: unknown encoding: none"),
        (b'<?xml version="1.0" encoding="shift_jis"?><a/>', "x.xml is not XML: multi-byte encodings are not supported"),
    ],
)
def test_other_files_are_rejected_with_their_name(content: bytes, reason: str) -> None:
    for read in (safe_xml.check, safe_xml.parse):
        with pytest.raises(InvalidDocument, match=reason):
            read(content, "x.xml")


@pytest.mark.parametrize("attribute", ["", ' xml:space="x"'])
def test_a_namespace_that_is_no_address_is_rejected(attribute: str) -> None:
    content = f'<a xmlns="http://\xfc/"><b{attribute}/></a>'.encode()
    with pytest.raises(InvalidDocument, match="xmlns: 'http://ü/' is not a valid URI"):
        safe_xml.parse(content, "x.xml")


def test_a_document_type_may_be_allowed_and_entities_never() -> None:
    assert safe_xml.parse(b"<!DOCTYPE a><a/>", "x.xml", allow_doctype=True).getroot().tag == "a"
    with pytest.raises(InvalidDocument, match="declares the XML entity 'b'"):
        safe_xml.parse(b'<!DOCTYPE a [<!ENTITY b "c">]><a/>', "x.xml", allow_doctype=True)


@pytest.mark.parametrize(
    ("declaration", "encoding"),
    [
        ("", "utf-8"),
        ("\ufeff", "utf-8"),
        ("\ufeff", "utf-16-be"),
        ("\ufeff<?xml version='1.0' encoding='UTF-16' standalone='no'?>\n", "utf-16-be"),
        ("<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n", "utf-8"),
        ("<?xml version='1.0' encoding='ISO-8859-1'?>\n", "latin-1"),
    ],
)
@pytest.mark.parametrize("body", ["<a> <b/>\xe4<![CDATA[y<]]></a>", "<!-- c --><a>\r\n\xe4</a>\r\n", "<a>\n</a>\n"])
def test_a_document_is_written_as_it_was_declared(declaration: str, encoding: str, body: str) -> None:
    content = (declaration + body).encode(encoding)
    assert safe_xml.serialized(safe_xml.parse(content, "x.xml"), content) == content


def test_a_character_that_the_encoding_lacks_becomes_a_reference() -> None:
    content = b"<?xml version='1.0' encoding='ISO-8859-1'?><a/>"
    tree = safe_xml.parse(content, "x.xml")
    tree.getroot().text = "\u20ac\U0001f600"
    assert safe_xml.serialized(tree, content) == content.replace(b"/>", b">&#8364;&#128512;</a>")


def test_characters_that_xml_cannot_contain_are_removed() -> None:
    kept = "\t\n\r \ud7ff\ue000\ufffd\U00010000\U0010ffff"
    assert safe_xml.fit_for_xml(f"a\x00b\x1f\ud800\udfff\ufffe\uffffc{kept}") == f"abc{kept}"
    assert safe_xml.fit_for_xml("plain") == "plain"
