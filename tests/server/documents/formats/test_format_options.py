"""Options of a document: its encoding, the columns of a table, and the language of the translation."""

import pytest

from server.documents.formats.options import FormatOptions
from server.documents.formats.registry import format_of
from server.documents.input.encoding import detect
from server.documents.rewriting import Translate
from server.interface.errors import InvalidDocument, InvalidRequest
from tests.server.documents.documents import LOUD, SAME, packed, translated, unpacked
from tests.server.documents.office import BOOK

LATIN = "Das Mädchen aß einen Apfel.\n\nWo ist die Tür? Größe: 5 m\n"
TABLE = "id;Name;Remark\n1;red apple;very good\n2;pear;not so good\n"


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("extension", [".txt", ".md"])
def test_a_text_is_read_and_written_in_its_encoding(codec: str, extension: str) -> None:
    content = LATIN.encode(codec)
    assert translated(content, extension, SAME) == content
    # Capitals have no ß, and two letters take its place.
    assert translated(content, extension, LOUD) == LATIN.upper().encode(codec)


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Où est la bibliothèque ? Je ne sais pas.", "cp1252"),
        ("Это предложение написано по-русски.", "cp1251"),
        ("これは日本語の文です。", "shift_jis"),
        ("这是一个中文句子。", "gb18030"),
    ],
)
def test_the_encoding_of_a_text_is_detected(text: str, codec: str) -> None:
    assert detect(text.encode(codec)).decode(text.encode(codec)) == text


def test_an_encoding_can_be_set() -> None:
    content = "Größe".encode("cp850")
    assert translated(content, ".txt", LOUD, options=FormatOptions(encoding="cp850")) == "GRÖSSE".encode("cp850")
    for wrong in ("no-such-one", "hex", "idna", "x" * 100):
        with pytest.raises(InvalidRequest, match="`encoding` must be one such as utf-8"):
            format_of("a.txt", FormatOptions(encoding=wrong))
    with pytest.raises(InvalidRequest, match=r"`encoding` is for \.txt, \.md.* files only. Given: a \.docx file"):
        format_of("a.docx", FormatOptions(encoding="utf-8"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", None])
def test_a_text_that_ends_inside_a_character_is_rejected_and_loses_nothing(encoding: str | None) -> None:
    content = "a né".encode(encoding or "utf-16-le")[:-1]
    with pytest.raises(InvalidDocument, match=r"the file is not UTF-.*; save it as UTF-8"):
        translated(content, ".txt", SAME, options=FormatOptions(encoding=encoding))


def test_a_translation_that_its_encoding_cannot_write_gets_plain_marks_or_an_error() -> None:
    async def quoted(texts: list[str]) -> list[str]:
        return ["„Größe“ – …"] * len(texts)

    async def foreign(texts: list[str]) -> list[str]:
        return ["размер"] * len(texts)

    latin = FormatOptions(encoding="latin-1")
    assert translated(b"size", ".txt", Translate(quoted), options=latin) == '"Größe" - ...'.encode("latin-1")  # type: ignore[arg-type]
    with pytest.raises(
        InvalidDocument, match=r"contains 'р', which ISO8859-1 cannot write; save the document as UTF-8"
    ):
        translated(b"size", ".txt", Translate(foreign), options=latin)  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [("Remark",), ("remark",), ("3",)])
def test_only_the_chosen_columns_of_a_table_are_translated(columns: tuple[str, ...]) -> None:
    result = translated(TABLE.encode(), ".csv", LOUD, options=FormatOptions(columns=columns)).decode()
    assert result == TABLE.replace("very good", "VERY GOOD").replace("not so good", "NOT SO GOOD")


def test_a_column_that_does_not_exist_is_rejected_with_the_columns() -> None:
    for column in ("Price", "4", "0"):
        with pytest.raises(InvalidDocument, match=r"numbers from 1 to 3, or among id, Name, Remark. Given"):
            translated(TABLE.encode(), ".csv", LOUD, options=FormatOptions(columns=(column,)))
    with pytest.raises(InvalidRequest, match=r"`columns` is for \.csv, \.tsv files only"):
        format_of("a.txt", FormatOptions(columns=("a",)))


def test_attributes_declare_the_language_of_the_translation() -> None:
    page = (
        '<html lang="en-US"><p lang=\'en\'>One</p><p lang=fr>Deux</p><div xml:lang="en" title="lang=en">Two</div>'
        '<script lang="en">x</script><a hreflang="en">Three</a></html>'
    )
    result = translated(page.encode(), ".html", SAME, options=FormatOptions(language="de")).decode()
    assert '<html lang="de">' in result
    assert "<p lang='de'>One" in result
    assert "<p lang=fr>Deux" in result
    assert '<div xml:lang="de" title="lang=en">' in result
    assert '<script lang="en">' in result
    assert 'hreflang="en"' in result
    assert 'lang="en-US"' in translated(page.encode(), ".html", SAME).decode()


def test_a_book_declares_the_language_of_the_translation() -> None:
    files = dict(BOOK)
    name = next(name for name in files if name.endswith(".xhtml"))
    files[name] = files[name].replace(b"<html ", b'<html xml:lang="en" lang="en" ')
    package = next(name for name in files if name.endswith(".opf"))
    files[package] = (
        files[package]
        .replace(b"<manifest", b"<metadata><dc:language>en-GB</dc:language></metadata><manifest")
        .replace(b"<package ", b'<package xmlns:dc="http://purl.org/dc/elements/1.1/" ', 1)
    )
    after = unpacked(translated(packed(files), ".epub", SAME, options=FormatOptions(language="de")))
    assert b'<html xml:lang="de" lang="de" ' in after[name]
    assert b"<dc:language>de</dc:language>" in after[package]
    assert unpacked(translated(packed(files), ".epub", SAME)) == files


def test_a_language_cannot_add_markup() -> None:
    options = format_of("a.html", FormatOptions(language='de"><script>')).options
    assert options.language == "de---script-"


def test_a_format_can_be_named() -> None:
    assert format_of("messages", format_name="json").extension == ".json"
    assert format_of("page.xhtml", format_name=".HTML").extension == ".html"
