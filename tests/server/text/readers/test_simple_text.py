"""Texts that are recognised at a glance have nothing to protect."""

import re

from hypothesis import given
from hypothesis import strategies as st

from server.text.readers.plain_text import may_be_special
from server.text.readers.unknown_characters import UnknownCharacters

_PIECES = (
    "the",
    "A",
    "I",
    "ß",
    "É",
    "e",
    " ",
    "  ",
    "\n",
    ".",
    ",",
    ":",
    "mailto:",
    "-",
    "'",
    "’",
    "!",
    "?",
    "x",
    "1",
    "/",
)


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_a_simple_text_is_never_special(text: str) -> None:
    unknown = UnknownCharacters(map(chr, range(0x250)))
    is_special = may_be_special(text, unknown)
    unknown.__dict__["simple_text"] = re.compile("(?!)")  # leaves the searches for all that is special
    assert may_be_special(text, unknown) == is_special


def test_a_text_with_unknown_letters_is_not_simple() -> None:
    unknown = UnknownCharacters("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .")
    assert unknown.simple_text.match("The dog is here.")
    assert not unknown.simple_text.match("The dog is here, too.")
    assert not unknown.simple_text.match("Ärger.")
    assert not UnknownCharacters("").simple_text.match("The")
