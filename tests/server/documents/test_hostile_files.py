"""Documents that are broken or built to do harm get an error that says why, soon, and nothing else happens."""

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

from server.documents.formats.registry import FORMATS, format_of
from server.documents.input.limits import FileLimits
from server.interface.errors import DocumentTooComplex, DocumentTooLarge, InvalidDocument, UnsupportedFormat
from tests.server.documents.documents import LOUD, SAME, packed, translated, unpacked
from tests.server.documents.office import BOOK, CHAPTER, book, odf_document, presentation, word_document
from tests.server.documents.spreadsheets import odf_presentation, spreadsheet, workbook

ARCHIVES: dict[str, Callable[[], bytes]] = {
    ".docx": word_document,
    ".pptx": presentation,
    ".odt": odf_document,
    ".epub": book,
    ".xlsx": workbook,
    ".ods": spreadsheet,
    ".odp": odf_presentation,
}
MAIN_PARTS = {
    ".docx": "word/document.xml",
    ".pptx": "ppt/slides/slide1.xml",
    ".odt": "content.xml",
    ".epub": "OEBPS/text/ch 1.xhtml",
    ".xlsx": "xl/sharedStrings.xml",
    ".ods": "content.xml",
    ".odp": "content.xml",
}
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BILLION_LAUGHS = f'<!DOCTYPE x [<!ENTITY l0 "lol">{LAUGHS}]>'
EXTERNAL = '<!DOCTYPE x [<!ENTITY file SYSTEM "file:///etc/passwd">]>'
PARAMETER = '<!DOCTYPE x [<!ENTITY % remote SYSTEM "http://127.0.0.1/x.dtd"> %remote;]>'


def _with_part(extension: str, change: Callable[[bytes], bytes]) -> bytes:
    files = unpacked(ARCHIVES[extension]())
    files[MAIN_PARTS[extension]] = change(files[MAIN_PARTS[extension]])
    return packed(files)


@pytest.mark.parametrize("extension", ARCHIVES)
@pytest.mark.parametrize("doctype", [BILLION_LAUGHS, EXTERNAL, PARAMETER])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_entities_are_refused(extension: str, doctype: str, codec: str) -> None:
    def plant(content: bytes) -> bytes:
        declaration, _, root = content.decode().partition("?>")
        body = root[root.index("<!DOCTYPE") :].partition(">")[2] if "<!DOCTYPE" in root else root
        text = f'<?xml version="1.0" encoding="{codec}"?>{doctype}{body.replace(">Good ", ">&l9;&file; ")}'
        assert declaration
        return text.encode(codec)

    with pytest.raises(InvalidDocument, match=r"entit|document type"):
        translated(_with_part(extension, plant), extension, SAME)


@pytest.mark.parametrize("extension", ARCHIVES)
def test_a_bomb_is_refused_before_it_is_unpacked(extension: str) -> None:
    files = unpacked(ARCHIVES[extension]()) | {"bomb.bin": b"\0" * 50_000_000}
    content = packed(files)
    assert len(content) < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(
            DocumentTooLarge, match=r"unpack to 200 times its size.*bomb\.bin.*unpacks from \d+ bytes to 50000000"
        ):
            translated(content, extension, SAME)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_more_bytes_than_allowed_in_all_are_refused_with_the_numbers() -> None:
    files = unpacked(word_document()) | {f"{n}.bin": b"\0" * 900_000 for n in range(10)}
    limits = FileLimits(max_uncompressed_bytes=8_000_000)
    with pytest.raises(DocumentTooLarge, match=r"may have 8000000 bytes unpacked. It has 9\d{6} bytes"):
        translated(packed(files), ".docx", SAME, limits)


def test_a_part_that_is_too_large_to_be_parsed_is_refused_with_the_numbers() -> None:
    files = unpacked(word_document())
    types = (
        b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        b'<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        b'wordprocessingml.document.main+xml"/></Types>'
    )
    content = packed({"[Content_Types].xml": types, "word/document.xml": files["word/document.xml"]})
    limits = FileLimits(max_part_bytes=1000)
    with pytest.raises(DocumentTooLarge, match=r"word/document\.xml may have 1000 bytes unpacked. It has \d+ bytes"):
        translated(content, ".docx", SAME, limits)
    for extension in (".md", ".html", ".srt", ".po"):
        with pytest.raises(DocumentTooLarge, match="more than 1000 bytes"):
            translated(b"text\n" * 300, extension, SAME, limits)


def test_a_paragraph_of_markdown_that_would_take_long_is_refused_with_the_numbers() -> None:
    with pytest.raises(
        DocumentTooComplex, match=r"may have 30000 characters\. The paragraph in line 3 has 40002 characters"
    ):
        translated(b"Short.\n\n" + b"*a_ " * 10_000 + b"ab", ".md", SAME)


def test_more_files_than_allowed_are_refused_with_the_numbers() -> None:
    files = {f"{n}": b"" for n in range(300)}
    with pytest.raises(DocumentTooLarge, match=r"may have 200 files\. It has 300 files"):
        translated(packed(files), ".docx", SAME, FileLimits(max_entries=200))


def test_a_size_that_is_declared_smaller_than_it_is_gives_no_more_bytes() -> None:
    content = bytearray(packed(unpacked(word_document()) | {"z.bin": b"\0" * 900_000}))
    entry = content.rindex(b"PK\x01\x02")
    assert content[entry + 46 : entry + 51] == b"z.bin"
    content[entry + 24 : entry + 28] = struct.pack("<L", 10)
    with pytest.raises(InvalidDocument, match="damaged"):
        translated(bytes(content), ".docx", SAME)


@pytest.mark.parametrize("name", ["../../evil", "/evil", "a/../../evil", "..\\evil", "a\\b"])
def test_names_that_lead_out_of_the_document_are_refused(name: str) -> None:
    with pytest.raises(InvalidDocument, match="is not a valid name for a file inside a document"):
        translated(packed(unpacked(word_document()) | {name: b"x"}), ".docx", SAME)


def test_a_name_that_is_there_twice_is_refused() -> None:
    stream = io.BytesIO(word_document())
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("word/document.xml", "<x/>")
    with pytest.raises(InvalidDocument, match="twice"):
        translated(stream.getvalue(), ".docx", SAME)


@pytest.mark.parametrize("extension", ARCHIVES)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_document_that_is_cut_off_is_refused(extension: str, share: float) -> None:
    content = ARCHIVES[extension]()
    with pytest.raises(InvalidDocument):
        translated(content[: int(len(content) * share)], extension, SAME)


@pytest.mark.parametrize("charset", ["hex", "undefined", "rot13", "idna", "utf-16", "no-such-one", "&#0;"])
def test_a_page_in_an_unknown_encoding_is_read_in_the_detected_one(charset: str) -> None:
    page = f'<meta charset="{charset}"><p>Good '.encode() + b"\xe9</p>"
    assert "<p>GOOD \u00c9</p>" in translated(page, ".html", LOUD).decode("cp1252")


@pytest.mark.parametrize("extension", ARCHIVES)
def test_damaged_bytes_are_refused(extension: str) -> None:
    content = bytearray(ARCHIVES[extension]())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        start = archive.getinfo(MAIN_PARTS[extension]).header_offset + 30 + len(MAIN_PARTS[extension])
    content[start + 20 : start + 60] = b"\xff" * 40
    with pytest.raises(InvalidDocument, match="damaged"):
        translated(bytes(content), extension, SAME)


@pytest.mark.parametrize("extension", ARCHIVES)
@pytest.mark.parametrize("other", [*ARCHIVES, ".txt"])
def test_a_document_under_the_name_of_another_kind_is_refused(extension: str, other: str) -> None:
    if other != extension:
        content = b"Just text." if other == ".txt" else ARCHIVES[other]()
        with pytest.raises(InvalidDocument):
            translated(content, extension, SAME)


@pytest.mark.parametrize("extension", [".txt", ".md", ".html", ".srt", ".csv", ".po"])
def test_an_archive_under_the_name_of_a_text_is_refused(extension: str) -> None:
    with pytest.raises(InvalidDocument):
        translated(word_document(), extension, SAME)


@pytest.mark.parametrize(
    "extension", [extension for extension, kind in FORMATS.items() if "encoding" in kind.takes or extension == ".po"]
)
def test_an_empty_text_stays_empty(extension: str) -> None:
    result = translated(b"", extension, SAME)
    assert not result.strip() or extension in (".html", ".htm", ".po")


@pytest.mark.parametrize("extension", ARCHIVES)
@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda _: b"no XML",
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b">", b">" + b"<x>" * 1000, 2),
        lambda content: content.replace(b"</", b"\x00\x01\xff</", 1),
    ],
)
def test_malformed_xml_is_rejected(extension: str, change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(InvalidDocument):
        translated(_with_part(extension, change), extension, SAME)


def test_an_encrypted_document_is_refused() -> None:
    content = bytearray(word_document())
    entry = content.index(b"PK\x01\x02")
    content[entry + 8] |= 1
    with pytest.raises(InvalidDocument, match="encrypted; remove the password"):
        translated(bytes(content), ".docx", SAME)


@pytest.mark.parametrize("extension", [".docx", ".pptx"])
def test_a_document_that_office_has_encrypted_is_refused_with_the_reason(extension: str) -> None:
    with pytest.raises(InvalidDocument, match="needs a password, or has the format of Office before 2007"):
        translated(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4096), extension, SAME)


def test_other_ways_to_compress_are_refused() -> None:
    with pytest.raises(InvalidDocument, match="has a compression"):
        translated(packed(unpacked(word_document()), zipfile.ZIP_LZMA), ".docx", SAME)


def test_a_book_whose_contents_point_out_of_it_is_read_without_them() -> None:
    package = BOOK["OEBPS/content.opf"].replace(b"toc.ncx", b"../../../etc/passwd")
    files = unpacked(translated(packed(BOOK | {"OEBPS/content.opf": package}), ".epub", SAME))
    assert files["OEBPS/text/ch 1.xhtml"] == CHAPTER.encode()


@pytest.mark.parametrize("name", ["letter.exe", "letter", "letter.docx.zip", "", ".docx"])
def test_other_extensions_are_rejected_with_the_available_ones(name: str) -> None:
    with pytest.raises(UnsupportedFormat, match=r"available: \.txt, \.md, \.html.*\.epub"):
        format_of(name)
