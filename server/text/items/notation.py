"""Items as a language writes them, by CLDR: separators, percent signs, currencies, dates and times."""

from functools import lru_cache

import regex
from babel.numbers import format_decimal

from server.text.items.clock_times import localized_time
from server.text.items.compounds import range_currency
from server.text.items.kinds import NUMERIC, ItemKind
from server.text.items.matching import find_items
from server.text.items.numbers import (
    DECADES,
    is_negative,
    locale_of,
    ordinal_suffix,
    readings,
    separators,
    value_in,
    without_ordinal,
)
from server.text.items.patterns import CURRENCY_CODES, CURRENCY_SIGNS, CURRENCY_WORDS, NUMBERS, NUMERO_SIGN
from server.text.items.words import currency_word, magnitude_at, magnitudes, without_magnitude
from server.text.items.written_dates import is_written, localized_date

_MONEY = regex.compile(rf"{CURRENCY_SIGNS}|{CURRENCY_CODES}")
_CURRENCY_WORD = regex.compile(CURRENCY_WORDS)
_DATE = regex.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_GROUPS = " \u00a0\u202f.,'’"
_ORDINAL_ENDS = {
    "de": ".",
    "da": ".",
    "nb": ".",
    "fi": ".",
    "pl": ".",
    "cs": ".",
    "fr": "e",
    "es": ".º",
    "it": "º",
    "pt": "º",
    "nl": "e",
}
_NUMEROS = {"de": "Nr. ", "fr": "n° ", "es": "n.º ", "it": "n. ", "pt": "n.º ", "nl": "nr. ", "pl": "nr "}
_NO_BREAK = "\N{NO-BREAK SPACE}"


def localized(kind: ItemKind, item: str, source: str, target: str) -> str:
    """Return an item in the notation of the target language; as it is if that is not certain, and for codes."""
    if source.partition("-")[0] == target.partition("-")[0]:
        return item
    if kind in NUMERIC:
        return _numeric(kind, item, source, target)
    if kind is ItemKind.DATE:
        return localized_date(item, target) if is_written(item) else _date(item, source, target)
    if kind is ItemKind.RANGE:
        numbers = NUMBERS.sub(lambda number: localized_number(number.group(), source, target), item)
        currency = range_currency(item)
        return with_currency(numbers.replace(currency, "").strip(), currency, target) if currency else numbers
    if kind is ItemKind.NUMERAL:
        return item.rstrip(".")
    if kind is ItemKind.WORD and (found := next(find_items(item), None)) and (found.start, found.end) == (0, len(item)):
        return localized(found.kind, item, source, target)  # a part of it is not in the vocabulary
    if kind is ItemKind.TIME:
        return localized_time(item, target)
    return item


def localized_number(number: str, source: str, target: str) -> str:
    """Return a number with the separators of the target language."""
    digits = number.lstrip("-−+±")
    value = value_in(digits, source)
    if value is None or digits.isdecimal():
        return number
    decimal, group = separators(source)
    to_decimal, to_group = separators(target)
    last = next((each for each in reversed(digits) if not each.isdecimal()), "")
    whole, point, fraction = digits, "", ""
    if last == decimal:
        whole, point, fraction = digits.rpartition(decimal)
    if any(each not in _GROUPS for each in whole if not each.isdecimal()) or decimal in whole:
        return number
    if not point and not (_is_group(last, group) and value == int(value)):
        return number
    groups = regex.split(r"\D", whole)
    return number[: len(number) - len(digits)] + to_group.join(groups) + (to_decimal if point else "") + fraction


def ordinal(number: str, language: str) -> str:
    """Return an ordinal number as a language writes it; the number itself where that is not known."""
    if language.startswith("en"):
        return number + ordinal_suffix(int(number))
    return number + _ORDINAL_ENDS.get(language.partition("-")[0], "")


def numeral(numeral: str, language: str) -> str:
    """Return the Roman number of a ruler as a language writes it: with the full stop of its ordinal numbers."""
    return numeral + ("." if _ORDINAL_ENDS.get(language.partition("-")[0]) == "." else "")


def numero(language: str) -> str:
    """Return the abbreviation of "number" before one, with the space behind it; the English one by default."""
    return _NUMEROS.get(language.partition("-")[0], "No. ")


def _is_group(sign: str, group: str) -> bool:
    return sign == group or (sign.isspace() and group.isspace()) or (sign in "'’" and group in "'’")


def _numeric(kind: ItemKind, item: str, source: str, target: str) -> str:
    match = NUMBERS.search(item)
    if match is None or not readings(match.group()):
        return item
    before, behind = item[: match.start()], item[match.end() :]
    number = localized_number(match.group(), source, target)
    if kind is ItemKind.PERCENTAGE:
        sign = behind.strip()
        space = locale_of(target).percent_formats[None].pattern.partition("%")[0][-1:]
        return number + (space if space.isspace() else "") + sign
    if kind is ItemKind.NUMBER and regex.fullmatch(NUMERO_SIGN, before):
        return numero(target) + number
    if kind is ItemKind.NUMBER and behind in DECADES.values():
        return number + DECADES.get(target.partition("-")[0], "")
    if kind is ItemKind.NUMBER and behind and not without_ordinal(behind):
        end = _ORDINAL_ENDS.get(target.partition("-")[0])
        return item if end is None else number + end
    if kind is ItemKind.MONEY and behind in ("k", "K"):
        number, behind = _thousands(match.group(), source, target), ""
    elif power := magnitude_at(behind.upper() if len(behind) == 1 and kind is ItemKind.MONEY else behind, source):
        behind = without_magnitude(behind, source)
        number += " " + _magnitude(power, target, is_one=match.group() in ("1", "1.0"))
    if kind is ItemKind.MONEY and (word := _CURRENCY_WORD.search(behind)):
        return f"{number} {currency_word(word.group(), match.group(), target)}"
    if kind is ItemKind.MONEY and (currency := _MONEY.search(before) or _MONEY.search(behind)):
        return with_currency(number, currency.group(), target)
    return before + number + behind


def _thousands(number: str, source: str, target: str) -> str:
    value = value_in(number, source)
    assert value is not None, "numbers without a value are not localized"
    return ("-" if is_negative(number) else "") + str(format_decimal(value.scaleb(3), locale=locale_of(target)))


def with_currency(number: str, currency: str, target: str) -> str:
    """Return an amount with the sign or the code of its currency where the target language has it."""
    pattern = locale_of(target).currency_formats["standard"].pattern.partition(";")[0]
    if pattern.startswith("¤"):
        space = _NO_BREAK if currency.isalpha() or pattern[1:2].isspace() else ""
        return currency + space + number
    return number + _NO_BREAK + currency


@lru_cache(maxsize=256)
def _magnitude(power: int, target: str, *, is_one: bool) -> str:
    formats = locale_of(target).compact_decimal_formats["long"]
    patterns = formats.get("one" if is_one else "other") or formats["other"]
    written = str(getattr(patterns.get("1" + "0" * power), "pattern", ""))
    word = regex.sub(r"[0\u00a0]+", " ", written).strip().replace("'", "")
    return word or next((each for each, its_power in magnitudes(target).items() if its_power == power), "")


def _date(item: str, source: str, target: str) -> str:
    match = _DATE.fullmatch(item)
    if match is None:
        return item
    first, _, second, year = match.groups()
    # Some writers of English name the day first.
    is_month_first = int(first) <= 12 and (_order(source) == "mdy" or int(second) > 12)
    month, day = (first, second) if is_month_first else (second, first)
    # With both numbers up to 12, a writer may have used the other order.
    if int(month) > 12 or (int(day) <= 12 and day != month) or _order(target) not in ("mdy", "dmy"):
        return item
    pattern = str(locale_of(target).date_formats["short"].pattern)
    separator = next((each for each in pattern if not each.isalpha()), ".")
    month = month.zfill(2) if "MM" in pattern else str(int(month))
    day = day.zfill(2) if "dd" in pattern else str(int(day))
    return separator.join((month, day, year) if _order(target) == "mdy" else (day, month, year))


def _order(language: str) -> str:
    pattern = str(locale_of(language).date_formats["short"].pattern).lower()
    return "".join(sorted({each for each in pattern if each in "dmy"}, key=pattern.index))
