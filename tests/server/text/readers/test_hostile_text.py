"""Hostile texts: the time to read a text grows with its length, not with its square."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from server.text.readers.plain_text import may_be_special, read_text
from server.text.readers.units import ProtectedSpan, Unit
from server.text.readers.unknown_characters import UnknownCharacters
from server.translation.types import TranslationRequest
from tests.fakes.echo import make_bundle
from tests.server.text.identity import LETTERS, Identity

UNKNOWN = UnknownCharacters(map(chr, range(0x250)))

_LENGTH = 1000
_GROWTH = 8  # of the length; the time of something quadratic grows 64 times
_MOST_TIMES_LONGER = 24.0
_FLOOR_SECONDS = 0.002  # shorter times are too noisy to compare


def _seconds(work: Callable[[str], object], text: str) -> float:
    """Return the processor time of this thread, which other work on the machine hardly changes."""
    begun = time.thread_time()
    work(text)
    return time.thread_time() - begun


def _grows_with_length(work: Callable[[str], object], make: Callable[[int], str]) -> bool:
    """Return whether one of three measurements shows it; quadratic time fails all three."""
    for _ in range(3):
        short = max(_seconds(work, make(_LENGTH)), _FLOOR_SECONDS)
        if _seconds(work, make(_LENGTH * _GROWTH)) < short * _MOST_TIMES_LONGER:
            return True
    return False


@pytest.mark.parametrize("space", ["\n", " ", "\t", " \n", "\r\n", "\u2028"])
def test_white_space_is_read_in_time_that_grows_with_its_length(space: str) -> None:
    assert _grows_with_length(lambda text: may_be_special(text, UNKNOWN), lambda length: f"a{space * length * 5}b")


@pytest.mark.parametrize(
    "part",
    [
        *("a", "a.", "a-b", "a_", "a.py", "__a", "--a", "/a", "v1.", "#a.", "@a-", "$a", "\\n"),
        *("1", "1'000", "1.1", "1,", "-1", "€", "€1", "1°", "%", "%d ", "%0", "{}", "{{", "{a{}", "<a ", "<a>", "&a"),
        *(
            ">",
            "#",
            "|",
            "| ",
            "`",
            "``a`",
            "*a",
            "**a ",
            "_a ",
            "[a](",
            "[[",
            "www.(",
            "www.)",
            "http://",
            "www.a(b",
            "%a",
            "<0",
        ),
        *("🎉", "🇩🇪", "\u200d", "e\u0301", "👩‍", "日 ", "-"),
    ],
)
def test_a_line_of_one_thing_is_read_in_time_that_grows_with_its_length(part: str) -> None:
    assert _grows_with_length(lambda text: read_text(text, UNKNOWN), lambda length: (part * length)[:length])


@pytest.mark.parametrize(
    ("before", "part", "behind"),
    [
        ("a@", "a.b-", ""),
        ("", "a", " %s"),
        ("www.a", ".", ""),
        ("www.", "(", ""),
        ("www.", "(a)", "("),
        ("www.", "{a", ""),
        ("<", "0", ""),
        ("%", "a", ""),
        ("%(a)", "0", ""),
        ("%", "0", ""),
        ("1.", "1", ".1"),
        ("| x", " ", "y"),
        ("x ", "#", " y"),
        ("<a", " ", ""),
        ("{", "a", ""),
        ("v1-", ".", ""),
    ],
)
def test_a_line_that_almost_is_something_is_read_in_time_that_grows_with_its_length(
    before: str, part: str, behind: str
) -> None:
    def make(length: int) -> str:
        return before + (part * length)[:length] + behind

    assert _grows_with_length(lambda text: read_text(text, UNKNOWN), make)


class _Watched(tuple[ProtectedSpan, ...]):
    """Counts how many of its members were iterated over."""

    num_seen = 0

    def __iter__(self) -> Iterator[ProtectedSpan]:
        for each in super().__iter__():
            type(self).num_seen += 1
            yield each


def test_sentences_do_not_iterate_over_all_protected_spans(tmp_path: Path) -> None:
    reader = Identity(make_bundle(tmp_path, sentences=LETTERS)).pipeline._reader
    [unit] = (part for part in read_text("The tea is hot. " * 100 + "12 " * 100, UNKNOWN) if isinstance(part, Unit))
    watched = replace(unit, protected=_Watched(unit.protected))
    sentences = list(reader._sentences(0, watched, TranslationRequest(("",), "en", "de")))
    assert len(sentences) > 100
    assert _Watched.num_seen <= 100
