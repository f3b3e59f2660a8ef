"""Escapes, separators and mistakes in the tables of texts that programs have."""

from collections.abc import Sequence

import pytest

from server.documents.rewriting import Translate
from server.interface.errors import InvalidDocument
from tests.server.documents.documents import LOUD, SAME, translated


@pytest.mark.parametrize(
    ("extension", "content", "expected"),
    [
        (".properties", "a : one two\r\nb\tone two\n", "a : ONE TWO\r\nb\tONE TWO\n"),
        (".properties", "a=\\u00e4b \\ud83d\\ude00 c\n", "a=\\u00c4B \\ud83d\\ude00 C\n"),
        (".properties", "a=\\ good day\n", "a=\\ GOOD DAY\n"),
        (".properties", "a=one\\\n   two\nb=\\q one\n", "a=ONETWO\nb=Q ONE\n"),
        (".properties", "a=one\\\\ two\\f\\r\\n x", "a=ONE\\\\ TWO\\f\\r\\n X"),
        # Keys that continue in the next line, or have white space that is none for Java.
        (".properties", "a\\\n  b=one two", "a\\\n  b=ONE TWO"),
        # Separators that continue in the next line, and values that begin like one.
        (".properties", "a = \\\n  one two\n", "a = \\\n  ONE TWO\n"),
        (".properties", "a \\=one two\nb = :) you", "a \\=ONE TWO\nb = \\:) YOU"),
        # A lone backslash at the end of the file continues nothing, and is no part of the value.
        (".properties", "a=one two\\", "a=ONE TWO\\"),
        (".strings", '"a" = "one \\"two\\"";', '"a" = "ONE \\"TWO\\"";'),
        (".strings", 'a="x \\U00e4\\101\\q";b = c;\n', 'a="X ÄAQ";b = c;\n'),
        (
            ".strings",
            '/* "a"="one two"; * */ "b"; // "c"="d e";\n"f"="g h";',
            '/* "a"="one two"; * */ "b"; // "c"="d e";\n"f"="G H";',
        ),
        (".strings", '"a"="one\\ttwo\\\\ \\a\n";', '"a"="ONE\\tTWO\\\\ \a\\n";'),
        (".strings", "", ""),
    ],
)
def test_values_are_read_and_written_with_their_escapes(extension: str, content: str, expected: str) -> None:
    assert translated(content.encode(), extension, SAME).decode() == content
    assert translated(content.encode(), extension, LOUD).decode() == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('"a" = "b";\n\n= "c";', "line 3 must have a key. Given: '= \"c\";'"),
        ('"a"\n"b";', "line 2 must have `=`"),
        ('"a" =\n\n;', "line 3 must have a value in quotes"),
        ('"a" = "b"', "line 1 must have `;`. Given: ''"),
    ],
)
def test_a_mistake_is_named_with_its_line(content: str, reason: str) -> None:
    with pytest.raises(InvalidDocument) as rejected:
        translated(content.encode(), ".strings", SAME)
    assert reason in str(rejected.value)


@pytest.mark.parametrize(
    ("content", "asked", "expected"),
    [
        ("a=it''s {0}\nb=it's", ["it's {0}", "it's"], "a=L''X {0}\nb=L'X"),
        ("a=it is {0}\nc=that''s {1}", ["it is {0}", "that's {1}"], "a=L''X {0}\nc=L''X {1}"),
        ("a=it's {0}\nb=that''s {1}", ["it's {0}", "that''s {1}"], "a=L'X {0}\nb=L'X {1}"),
        ("a=it is {0}", ["it is {0}"], "a=L'X {0}"),
    ],
)
def test_apostrophes_of_messages_with_arguments_are_doubled_where_the_file_doubles_them(
    content: str, asked: list[str], expected: str
) -> None:
    received: list[str] = []

    async def french(texts: Sequence[str]) -> list[str]:
        received.extend(texts)
        return [f"L'X {text[text.index('{') :]}" if "{" in text else "L'X" for text in texts]

    assert translated(content.encode(), ".properties", Translate(french)).decode() == expected
    assert received == asked
