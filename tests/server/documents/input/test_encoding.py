import codecs
import io

import pytest

from server.documents.input.encoding import (
    Encoding,
    check_encoding,
    codec_of,
    detect,
    detect_in,
    has_mark,
)
from server.interface.errors import InvalidDocument, InvalidRequest


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (b"abc", None, Encoding()),
        (codecs.BOM_UTF8 + b"a", None, Encoding("utf-8", codecs.BOM_UTF8)),
        (codecs.BOM_UTF16_LE + b"a\0", None, Encoding("utf-16-le", codecs.BOM_UTF16_LE)),
        (codecs.BOM_UTF8 * 2 + b"a", None, Encoding("utf-8", codecs.BOM_UTF8 * 2)),
        (codecs.BOM_UTF8 + b"a", "latin-1", Encoding("iso8859-1")),
        ("abc".encode("utf-16-be"), "utf-16", Encoding("utf-16-be")),
        ("abc".encode("utf-16-le"), None, Encoding("utf-16-le")),
    ],
)
def test_the_encoding_is_named_marked_or_detected(content: bytes, name: str | None, expected: Encoding) -> None:
    assert detect(content, name) == expected
    source = io.BytesIO(content)
    assert detect_in(source, name) == expected
    assert source.tell() == len(expected.mark)
    assert has_mark(content) == (content[:2] in (b"\xef\xbb", b"\xff\xfe", b"\xfe\xff"))


def test_a_mark_is_no_text_and_is_written_again() -> None:
    marked = Encoding("utf-8", codecs.BOM_UTF8)
    assert marked.decode(codecs.BOM_UTF8 + b"a") == "a"
    assert marked.encode("b") == codecs.BOM_UTF8 + b"b"
    assert marked.encode_part("b") == b"b"
    with pytest.raises(InvalidDocument, match=r"the file is not UTF-8: .* at byte 5; save it as UTF-8"):
        marked.decode(codecs.BOM_UTF8 + b"ab\xff")


@pytest.mark.parametrize("before", [65_530, 65_536, 200_000])
def test_a_letter_far_behind_the_beginning_decides(before: int) -> None:
    for codec in ("utf-8", "cp1252"):
        content = (b"plain text. " * 20_000)[:before] + ("Größe und Maß, schöne Grüße. " * 20).encode(codec)
        source = io.BytesIO(content)
        assert detect_in(source).codec == codec
        assert source.tell() == 0
        assert detect(content).codec == codec


def test_marks_that_a_codec_lacks_become_plain_ones() -> None:
    latin = Encoding("iso8859-1")
    assert latin.encode_part("„Maß“ – ‚x’…") == "\"Maß\" - 'x'...".encode("latin-1")
    assert Encoding("cp1252").encode_part("„Maß“") == "„Maß“".encode("cp1252")
    with pytest.raises(InvalidDocument, match="contains 'ж', which ISO8859-1 cannot write"):
        latin.encode_part("„ж“")
    assert Encoding().encode_part("a\ud800") == b"a?"


def test_codecs_that_no_document_uses_are_none() -> None:
    assert codec_of("UTF8") == check_encoding("utf_8") == "utf-8"
    for name in ("hex", "idna", "punycode", "unicode_escape", "raw-unicode-escape", "undefined", "nope", "a\0b"):
        assert codec_of(name) is None
        with pytest.raises(InvalidRequest, match="`encoding` must be one such as"):
            check_encoding(name)
