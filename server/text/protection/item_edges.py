"""The rest of an item in an answer, beside its number: `th`, `Uhr`, `m2` for `m²`, a misspelt currency."""

from dataclasses import replace
from unicodedata import normalize

import regex

from server.text.items.kinds import NUMERIC, ItemKind
from server.text.items.numbers import ordinal_suffix
from server.text.items.patterns import NUMBERS
from server.text.items.written_dates import MONTH
from server.text.protection.found_item import FoundItem, Notation

# Models that often read times write these behind scores, too.
CLOCK = regex.compile(r"\s(?:Uhr|[ap]\.?m\b(?:\.(?!$))?|o['’]clock)(?!\w)", regex.IGNORECASE)
_BEHIND_TIME = regex.compile(r"(?:\s?[ap]\.?|\.)m\b(?:\.(?!$))?|\s(?:o['’])?clock\b|(?P<hour> Uhr\b)", regex.IGNORECASE)
_ENGLISH_ORDINAL = regex.compile(r"(?:st|nd|rd|th)(?!\w)")
_MONTH_BEFORE = regex.compile(rf"(?<!\w){MONTH}\s?$")
_LONGEST_MONTH = 16  # characters
_MONTH_BEHIND = regex.compile(rf"\.?\s?{MONTH}")
_WORD = r"\s?[^\s.,;:!?()\d\"“”„«»-][^\s.,;:!?()\"“”„«»]*"
_NOTHING = regex.compile("(?!)")
_CLAUSE_END = regex.compile(r"\s*(?:[.,;:!?)]|$)")


def with_edges(found: FoundItem, text: str, sentence: str, notation: Notation) -> FoundItem:
    """Return an item that the model copied from its input `sentence`, with all that belongs to it in an answer."""
    kind = found.item.kind
    if kind is ItemKind.RANGE and CLOCK.search(sentence) is None and (clock := CLOCK.match(text, found.end)):
        return replace(found, end=clock.end())
    if kind is ItemKind.DATE and (suffix := _ENGLISH_ORDINAL.match(text, found.end)):
        return replace(found, end=suffix.end())
    if kind is ItemKind.QUANTITY:
        return _with_small_digits(found, text)
    return with_ordinal(found, text, notation)


def with_rest(found: FoundItem, text: str, sentence: str) -> FoundItem:
    """Return an item that was put in the place of a number, with what the model wrote of its other words.

    These are names of months beside a date and the clock behind a time; behind other items, a longer unit or suffix
    (`100 mm` for `100 m`, `4711-Bug` for `4711-B`), and as many words as they have, if a clause ends behind both: `500
    emergency.` for `500 Euro.`.
    """
    item, start, end = found.item, found.start, found.end
    if item.kind is ItemKind.TIME:
        return _with_clock(found, text)
    if item.kind is ItemKind.DATE:
        if (month := _MONTH_BEFORE.search(text, max(start - _LONGEST_MONTH, 0), start)) is not None:
            start = month.start()
        elif (month := _MONTH_BEHIND.match(text, end)) is not None:
            end = month.end()
        return replace(found, start=start, end=end)
    number = NUMBERS.search(item.text)
    rest_of_item = "" if number is None else item.text[number.end() :]
    if (garbled := _garbled(rest_of_item).match(text, end)) is not None:
        return replace(found, end=garbled.end())
    num_words = len(rest_of_item.split())
    if item.kind not in NUMERIC or not num_words or _CLAUSE_END.match(sentence, item.start + len(item.shown)) is None:
        return found
    rest = regex.compile(rf"(?:{_WORD}){{1,{num_words}}}+(?={_CLAUSE_END.pattern})").match(text, end)
    return found if rest is None else replace(found, end=rest.end())


def with_ordinal(found: FoundItem, text: str, notation: Notation) -> FoundItem:
    """Return a found number with the suffix of an English ordinal that it needs, if it has one: `21st`, not `21th`."""
    suffix = _ENGLISH_ORDINAL.match(text, found.end)
    number = found.output or ""
    if suffix is None or not number.isdecimal() or not notation.target.startswith("en"):
        return found
    return replace(found, end=suffix.end(), output=number + ordinal_suffix(int(number)))


def _garbled(rest: str) -> "regex.Pattern[str]":
    """Return a pattern of the rest of an item, behind its number, with letters that follow directly.

    Behind a blank only the same letters and digits: `mit` is a word, and not the unit `m`.
    """
    end = regex.escape(rest.strip())
    if not end:
        return _NOTHING
    return regex.compile(rf"{end}\w{{1,3}}(?!\w)" if rest[0] in "-/" else rf"\s?{end}(?:\d|{end}){{1,3}}(?!\w)")


def _with_clock(found: FoundItem, text: str) -> FoundItem:
    """Return a time with what stands behind it: a meridiem was that of the other time, `Uhr` stands before a zone."""
    behind = _BEHIND_TIME.match(text, found.end)
    if behind is None or found.output is None or found.output[-1:].lower() == "m":
        return found
    time, space, zone = found.output.partition(" ")
    return replace(found, end=behind.end(), output=f"{time}{behind['hour'] or ''}{space}{zone}")


def _with_small_digits(found: FoundItem, text: str) -> FoundItem:
    """Return a quantity whose unit has small digits, which tokenizers read as others: `m2` for `m²`."""
    number = NUMBERS.search(found.item.text)
    unit = "" if number is None else found.item.text[number.end() :].strip()
    plain = normalize("NFKC", unit)
    behind = None if plain == unit else regex.compile(rf"\s?{regex.escape(plain)}(?!\w)").match(text, found.end)
    return found if behind is None else replace(found, end=behind.end(), output=f"{found.output} {unit}")
