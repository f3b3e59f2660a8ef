"""Values of numbers and dates as texts write them."""

from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

import regex
from babel import Locale, UnknownLocaleError

_MAX_CHARACTERS = 60  # longer runs of digits are compared as text
_SIGNS = "-−+±"
_DECIMALS = ".,"
_ORDINAL = regex.compile(r"(?:st|nd|rd|th|er|re|e|è|ème|º|ª|\.º|\.ª)$")
_DIGITS = regex.compile(r"\d++")
DECADES = {"en": "s", "de": "er"}  # 1990s, 1990er


@lru_cache(maxsize=256)
def locale_of(language: str) -> Locale:
    """Return the CLDR data of a language; English for one without any."""
    try:
        return Locale.parse(language.replace("-", "_"))
    except (UnknownLocaleError, ValueError, TypeError):
        return Locale("en")


@lru_cache(maxsize=256)
def separators(language: str) -> tuple[str, str]:
    """Return the decimal sign and the separator of thousands of a language."""
    symbols = locale_of(language).number_symbols
    symbols = symbols.get("latn", symbols)
    return str(symbols["decimal"]), str(symbols["group"])


def readings(number: str) -> set[Decimal]:
    """Return all values that a number may have, whichever signs its language writes between digits.

    A number such as `1.0000,00`, which no language writes, has none.

    >>> sorted(readings("1.250"))
    [Decimal('1.250'), Decimal('1250')]
    """
    digits = number.lstrip(_SIGNS)
    if not digits or len(digits) > _MAX_CHARACTERS:
        return set()
    cuts = [index for index, character in enumerate(digits) if not character.isdecimal()]
    groups = _groups(digits, cuts)
    if not cuts:
        return {Decimal(digits)}
    found: set[Decimal] = set()
    if _are_thousands(digits, cuts, groups):
        found.add(Decimal("".join(groups)))
    if digits[cuts[-1]] in _DECIMALS and (
        len(cuts) == 1 or (digits[cuts[-1]] != digits[cuts[-2]] and _are_thousands(digits, cuts[:-1], groups[:-1]))
    ):
        found.add(Decimal(f"{''.join(groups[:-1])}.{groups[-1]}"))
    return found


def value_in(number: str, language: str) -> Decimal | None:
    """Return the value of a number as its language reads it; None if it can have none there."""
    values = readings(number)
    decimal, _ = separators(language)
    digits = number.lstrip(_SIGNS)
    if len(values) <= 1:
        return next(iter(values), None)
    # Both are possible: one separator with three digits behind it.
    separator = next(character for character in digits if not character.isdecimal())
    is_decimal = separator == decimal
    return min(values) if is_decimal else max(values)


def is_negative(number: str) -> bool:
    """Return whether a number has a minus sign."""
    return number[:1] in ("-", "−")


def without_ordinal(number: str) -> str:
    """Return a number without the suffix of an ordinal."""
    return _ORDINAL.sub("", number)


def ordinal_suffix(number: int) -> str:
    """Return the suffix of an English ordinal."""
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def date_parts(date: str) -> tuple[int, ...]:
    """Return the numbers of a date, sorted, a year with its century."""
    parts = [(int(part), len(part)) for part in _DIGITS.findall(date)[:3]]
    return tuple(sorted(part for part, _ in parts))


def _groups(digits: str, cuts: list[int]) -> list[str]:
    return [digits[start + 1 : end] for start, end in pairwise((-1, *cuts, len(digits)))]


def _are_thousands(digits: str, cuts: list[int], groups: list[str]) -> bool:
    """Return whether separators stand between thousands: all alike, and three digits behind each (two in India)."""
    if len({digits[cut] for cut in cuts}) != 1 or not 1 <= len(groups[0]) <= 3 or groups[0] == "0":
        return False
    inner = {len(group) for group in groups[1:-1]}
    return len(groups[-1]) == 3 and (inner <= {3} or (inner == {2} and len(groups[0]) <= 2))
