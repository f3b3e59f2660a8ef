"""Substitutes for items: others of the same kind, and names.

Models copy names and round numbers that they have often seen, and mangle `%1$s` or a file name.
"""

from collections.abc import Collection, Sequence

import regex

from server.text.items.compounds import CURRENCY_SIGN, scientific_pattern
from server.text.items.kinds import NUMERIC, ItemKind
from server.text.items.patterns import NUMBERS
from server.text.items.words import currency_word
from server.text.items.written_dates import is_written

# In the order of how reliably the default model copies them; docs/decisions/text.md has the numbers.
_NAMES = ("Tom", "Maria", "Boston", "Paris", "John", "Mary", "Anna", "Peter", "Berlin", "London")
KNOWN_CURRENCY = "$"  # the only one whose name models translate reliably: pounds become pillows
_NUMBERS = ("350", "47", "25", "128", "36", "240", "19", "78", "150", "64")
_MADE_UP = {
    ItemKind.URL: ("www.example.com", "www.example.org", "www.example.net"),
    ItemKind.EMAIL: ("info@example.com", "mail@example.org"),
    ItemKind.FILE: ("report.pdf", "photo.jpg", "notes.txt"),
    ItemKind.PATH: ("/usr/share/files", "/var/log/files"),
    ItemKind.PLACEHOLDER: ("{0}", "{1}", "{2}", "{3}"),
}
# A number stands for whatever is written mainly in digits.
_AS_NUMBERS = (
    ItemKind.DATE,
    ItemKind.TIME,
    ItemKind.PHONE,
    ItemKind.ACCOUNT,
    ItemKind.VERSION,
    ItemKind.CODE,
    ItemKind.RANGE,
)

MAX_SUBSTITUTES = len(_NAMES) // 2  # in one sentence; one with more is translated piecewise


def choose_substitutes(count: int, sentence: str, round_: int) -> list[str] | None:
    """Return different names that the sentence does not contain; None if there are not enough."""
    names = [name for name in _NAMES if name.lower() not in sentence.lower()]
    start = round_ % max(len(names), 1)
    chosen = (names[start:] + names[:start])[:count]
    return chosen if len(chosen) == count <= MAX_SUBSTITUTES else None


def choose_stand_in(
    kind: ItemKind, item: str, sentence: str, used: Collection[str], language: str
) -> tuple[ItemKind, str] | None:
    """Return a stand-in with its kind, neither in the sentence nor among those `used`; None if there is none.

    A number keeps its unit and whatever else stands in its item. An amount with the sign of a currency becomes one of
    dollars, by their name.
    """
    is_number = kind in NUMERIC or kind in _AS_NUMBERS
    for candidate in _NUMBERS if is_number else _MADE_UP.get(kind, ()):
        if candidate in sentence or candidate in used:
            continue
        if kind is ItemKind.DATE and is_written(item):
            return _similar_date(item)
        if kind not in NUMERIC:
            return (ItemKind.NUMBER if is_number else kind), candidate
        match = NUMBERS.search(item)
        if scientific_pattern(item) is not None:
            return kind, candidate
        if match is None or regex.fullmatch(r"(?:st|nd|rd|th|er|re|e|è|ème|\.?[ºª])", item[match.end() :]):
            return None
        before, behind = item[: match.start()], item[match.end() :]
        if CURRENCY_SIGN.search(item) is None:
            return kind, before + candidate + behind
        return kind, f"{candidate} {currency_word(KNOWN_CURRENCY, candidate, language)}"
    return None


def _similar_date(item: str) -> tuple[ItemKind, str] | None:
    """Return a date in the same words that models have seen often; None for the item itself."""
    similar = regex.sub(r"(?<!\d)\d{1,2}(?!\d)", "5", regex.sub(r"(?:, | de | )?\d{4}$", "", item))
    if not any(map(str.isdecimal, similar)):
        similar = f"{similar} 2010"
    return None if similar == item else (ItemKind.DATE, similar)


def substitute_number(stand_in: str) -> str:
    """Return the number in a stand-in of a numeric kind."""
    match = NUMBERS.search(stand_in)
    return stand_in if match is None else match.group()


def find_substitutes(translation: str, substitutes: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return the span of each substitute in a translation; None unless it has each exactly once."""
    found = [find_substitute(translation, name) for name in substitutes]
    return None if None in found else [span for span in found if span is not None]


def find_substitute(translation: str, name: str, *, is_inflected: bool = False) -> tuple[int, int] | None:
    """Return the span of a substitute; None unless it is there exactly once, as a word.

    With `is_inflected` it may have the `s` of a genitive, which belongs to the span.
    """
    end = r"(?:['’]?s)?" if is_inflected else ""
    matches = [match.span() for match in regex.finditer(rf"(?<!\w){regex.escape(name)}{end}(?!\w)", translation)]
    return matches[0] if len(matches) == 1 and translation.count(name) == 1 else None
