"""Spellings of numbers: grouped numbers in the target language's format, and the forms a translation may write.

Separators are those of CLDR. An unknown language means no edit, and the digits as they are.
"""

import unicodedata
from collections.abc import Callable, Collection
from decimal import Decimal
from functools import lru_cache, partial

import regex
from babel import Locale, UnknownLocaleError
from babel.numbers import (
    UnsupportedNumberingSystemError,
    get_decimal_symbol,
    get_group_symbol,
)

from server.text.language_tags import means_detection, primary_language

# Finds the replacements in a translation, in their order: start, end, text.
Edits = Callable[[str], list[tuple[int, int, str]]]

_MAX_TAG_CHARACTERS = 64  # the longest real language tags have half as many
_MAX_DIGITS = 40  # longer runs of digits are codes
_MAX_FORMS = 4
_MIN_UNASKED_GROUPS = 5  # digits; four without a separator may be a year, which no language groups
_ALIKE = ("\u00a0\u202f\u2009", "'\u2019")  # separators that readers do not tell apart

_ZEROS = {  # digits of numbering systems that CLDR prefers in some language
    "adlm": "\U0001e950",
    "arab": "\u0660",
    "arabext": "\u06f0",
    "beng": "\u09e6",
    "cakm": "\U00011136",
    "deva": "\u0966",
    "hmnp": "\U0001e140",
    "mtei": "\uabf0",
    "mymr": "\u1040",
    "nkoo": "\u07c0",
    "olck": "\u1c50",
    "tibt": "\u0f20",
}

# What may touch a grouped number. Letters without case belong to writing systems without spaces between words, or are
# prefixes. A cased letter, a digit, or another sign makes a part of a version, a code, an address, a list or a date.
_APART = r"\s\p{Lo}\p{Cf}、。，；：！？·"
_OPENING = r"""\p{Ps}\p{Pi}\p{Pf}"'¿¡~≈±<>+−-"""
_CLOSING = r"""\p{Pe}\p{Pi}\p{Pf}"'%‰+"""
_BEFORE = rf"^|(?<=[{_APART}\p{{Sc}}])|(?<=(?:^|[\p{{Ps}}{_APART}])[{_OPENING}])"
_AFTER = rf"$|[{_APART}\p{{Sc}}\p{{Mn}}—]|[.,;:!?…]++[{_CLOSING}]*+(?:$|\s)|-\p{{L}}|[-–—](?:$|\s)"


@lru_cache(maxsize=4096)
def locale_of(tag: str) -> Locale | None:
    """Return the CLDR data of a language, in whichever notation a bundle names it; None if CLDR has none."""
    if means_detection(tag) or len(tag) > _MAX_TAG_CHARACTERS:
        return None
    for name in (tag.strip().replace("-", "_"), primary_language(tag)):
        try:
            return Locale.parse(name)
        except (UnknownLocaleError, ValueError, TypeError):
            continue
    return None


def edits_of(source: str, source_language: str, target_language: str) -> Edits | None:
    """Return a function that finds the edits of a translation of this source; None if no number is edited.

    It returns the start, end and replacement of each grouped number that stands in a translation as in the source. A
    number is grouped if the source language's separator of thousands stands before every three digits and nothing else
    touches it. There are no edits between languages with the same separator.
    """
    old, new = separators(source_language), separators(target_language)
    if old is None or new is None or _class(old[1]) == _class(new[1]):
        return None
    pattern = _grouped(old[1])
    numbers = {match[0] for match in pattern.finditer(source)}
    return partial(_edits, pattern, numbers, new[1]) if numbers else None


def _edits(
    pattern: "regex.Pattern[str]", numbers: Collection[str], separator: str, translation: str
) -> list[tuple[int, int, str]]:
    return [
        (match.start(), match.end(), regex.sub(r"\D", separator, match[0]))
        for match in pattern.finditer(translation)
        if match[0] in numbers
    ]


def forms(number: str, source_language: str, target_language: str) -> tuple[str, ...]:
    """Return the spellings, four at most, in which a translation may write a number of the source.

    They are the number as it stands, with the target language's separators and digits, and without groups.

    >>> forms("20,000", "en", "de")
    ('20,000', '20.000', '20000')
    """
    old, new = separators(source_language), separators(target_language)
    digits = "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in number)
    spellings = [number, digits]
    if old is not None and new is not None and len(digits) <= _MAX_DIGITS:
        parsed = _parsed(digits, *old)
        if parsed is not None:
            whole, fraction = parsed
            grouped = _group(whole, new[1]) if len(whole) >= _MIN_UNASKED_GROUPS or old[1] in digits else whole
            rest = new[0] + fraction if fraction else ""
            spellings += [grouped + rest, whole + rest, _native(grouped + rest, target_language)]
    return tuple(dict.fromkeys(spellings))[:_MAX_FORMS]


def plural_category(number: str, source_language: str, language: str) -> str | None:
    """Return the plural category of CLDR that a language has for a number as the source writes it; None if unknown.

    >>> [plural_category(number, "en", "ru") for number in ("2", "5", "1.5", "1.5.2")]
    ['few', 'many', 'other', None]
    """
    written, locale = separators(source_language), locale_of(language)
    if written is None or locale is None or len(number) > _MAX_DIGITS or not number.isascii():
        return None
    parsed = _parsed(number, *written)
    return None if parsed is None else str(locale.plural_form(Decimal(".".join(filter(None, parsed)))))


@lru_cache(maxsize=4096)
def separators(language: str) -> tuple[str, str] | None:
    """Return the decimal separator and the separator of thousands of a language; None if it is unknown.

    They are those between ASCII digits, which all languages use.
    """
    locale = locale_of(language)
    if locale is None:
        return None
    try:
        return (
            get_decimal_symbol(locale, numbering_system="latn"),
            get_group_symbol(locale, numbering_system="latn"),
        )
    except UnsupportedNumberingSystemError:
        return None


def _class(separator: str) -> str:
    return next((alike for alike in _ALIKE if separator in alike), separator)


@lru_cache(maxsize=64)
def _grouped(separator: str) -> regex.Pattern[str]:
    sign = f"[{regex.escape(_class(separator))}]"
    thousands = rf"[1-9][0-9]{{0,2}}(?:{sign}[0-9]{{3}})+"
    end = rf"(?=[{_CLOSING}]*+(?:{_AFTER}))"
    return regex.compile(rf"(?:{_BEFORE}|(?<=\b{thousands}[-–])){thousands}(?:{end}|(?=[-–]{thousands}{end}))")


def _parsed(digits: str, decimal: str, group: str) -> tuple[str, str] | None:
    """Return the digits of a number before and after its decimal separator, without its groups."""
    pattern = rf"([0-9]++(?:[{regex.escape(_class(group))}][0-9]{{2,3}})*+)(?:{regex.escape(decimal)}([0-9]++))?+"
    match = regex.fullmatch(pattern, digits)
    return None if match is None else (regex.sub(r"\D", "", match[1]), match[2] or "")


def _group(digits: str, separator: str) -> str:
    return f"{int(digits):,}".replace(",", separator)


def _native(number: str, language: str) -> str:
    locale = locale_of(language)
    zero = _ZEROS.get(locale.default_numbering_system) if locale is not None else None
    if zero is None:
        return number
    return "".join(chr(ord(zero) + int(sign)) if sign.isdecimal() else sign for sign in number)
