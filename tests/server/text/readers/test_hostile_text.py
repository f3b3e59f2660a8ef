"""Hostile texts: the time to read a text grows with its length, not with its square."""

from collections.abc import Callable

import pytest

from server.text.readers.html import read_html
from server.text.readers.pieces import NO_MARKUP_OPTIONS, to_document
from server.text.readers.plain_text import read_text
from server.text.readers.xml import read_xml
from server.text.spans import find_spans
from server.text.unknown_characters import UnknownCharacters
from tests.linear_time import assert_linear_time

UNKNOWN = UnknownCharacters(map(chr, range(0x250)))
_LENGTH = 8_000
_SIGNS = r"""a 1
1, 1.1 1'000 -1 € 1° > # | ` * [[ ( { } < @ : ; ~ \ / . a. a-b a_ a.py __a --a /a a/ v1. #a. @a- $a \n %d
%0 %a %( {} {{ {a{} ${ $t( <a <a> <0 </ &a &# ``a` *a **a _a [a]( ![ www. www.( www.) http:// www.a(b a@ a@b. :a :a: ##A
__A %A $A ~~a ==A ::a <% <?= *| 😀 🇩🇪 👩‍ a\ A1-"""
_BLANKS = ("\n", " ", "\t", " \n", "\r\n", "\u2028", "\u200d", "e\u0301", "日 ", "日", "-", "| ", " #")
PARTS = (*_SIGNS.split(), *_BLANKS)
EDGES = (
    *(("a@", "a.b-", ""), ("", "a", " %s"), ("www.a", ".", ""), ("www.", "(", ""), ("www.", "(a)", "(")),
    *(("www.", "{a", ""), ("<", "0", ""), ("%", "a", ""), ("%(a)", "0", ""), ("%", "0", ""), ("1.", "1", ".1")),
    *(
        ("| x", " ", "y"),
        ("x", " ", "y"),
        ("x", "\t ", "y"),
        ("x ", "#", " y"),
        ("<a", " ", ""),
        ("{", "a", ""),
        ("v1-", ".", ""),
        ("C:\\", "a b", ""),
    ),
    *(("<a ", "<", ">"), ("<!--", "-", ">"), ("&", "a", ";"), ("`", "a", "` "), ("$f(", "(", ""), ("a/", "a.", "/")),
)


def _grows(read: Callable[[str], object], before: str, part: str, behind: str = "", length: int = _LENGTH) -> None:
    assert_linear_time(lambda size: before + (part * size)[:size] + behind, read, length)


@pytest.mark.parametrize(("before", "part", "behind"), [*(("", part, "") for part in PARTS), *EDGES])
def test_a_text_of_one_thing_is_read_in_time_that_grows_with_its_length(before: str, part: str, behind: str) -> None:
    def read(text: str) -> None:
        find_spans(text, UNKNOWN)
        read_text(text, UNKNOWN)
        to_document(read_html(text, NO_MARKUP_OPTIONS), UNKNOWN)

    _grows(read, before, part, behind)


@pytest.mark.parametrize("part", ["a", "<b>a</b>", "<i/>", "&amp;", "&x;", "<!-- a -->", "{a} ", "<b/>%s", "\u200ea "])
def test_xml_is_read_in_time_that_grows_with_its_length(part: str) -> None:
    def read(size: int) -> str:
        return part * (size // len(part))

    assert_linear_time(read, lambda text: to_document(read_xml(text, NO_MARKUP_OPTIONS), UNKNOWN), _LENGTH)
