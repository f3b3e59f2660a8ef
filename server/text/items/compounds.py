"""Patterns of what a translation may write for ranges, scientific numbers, numerals, digits, addresses, keys."""

from functools import lru_cache

import regex

from server.text.items.patterns import KEY_NAMES
from server.text.items.words import TO, currency_pattern, is_percent, spelled, unit_pattern

_RANGE = regex.compile(r"([\d.,]+)(\D)([\d.,]+)\s?(\D*)")
CURRENCY_SIGN = regex.compile(r"[$€£¥]")
_SCIENTIFIC = regex.compile(r"(.+?)([eE]|\s?[×x·*]\s?10\^?)([-+−⁻⁺]?[\d⁰¹²³⁴-⁹]+)")
_VULGAR = dict(zip("¼½¾⅓⅔⅛⅜⅝⅞", ("1/4", "1/2", "3/4", "1/3", "2/3", "1/8", "3/8", "5/8", "7/8"), strict=True))
_HALF = r"half|halve|halb\w*|demi\w*|moitié|medi[oa]|mezz[oa]|mei[oa]|metade|pół|połow\w*"
_JOINTS = {
    # `9-17` as `9:17` would be a time; `3-2` as `3:2` and `101-98` as `101:98` are scores.
    **dict.fromkeys("-–", rf"(?:\s?[-–—‐‑]\s?|{TO}|\s?:\s?(?!(?<=(?<!\d)\d{{1,2}}\s?:\s?)[0-5]\d(?!\d)))"),
    ":": rf"(?:\s?[:\-–]\s?|\s(?:zu|à|a|tegen)\s|{TO})",
    "/": r"\s?[/⁄]\s?",
}
# A range as most translations write it.
RANGES = regex.compile(r"(?<![\d.,])(?<!\w)[\d.,]*\d\s?[-–—‐‑:/⁄]\s?[\d.,]*\d(?![\d\p{L}]|[.,]\d)")
_NUMBERS = regex.compile(r"[\d.,]+")
_PLAIN_RANGE = regex.compile(r"([\d.,]+)\s?([-–—‐‑:/⁄])\s?([\d.,]+)")
_TIME = regex.compile(r"\d{1,2}\s?:\s?[0-5]\d")
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50}


def plain_range(text: str) -> tuple[str, str, str] | None:
    """Return both numbers of a range without a unit, and the sign for it, a fraction or a time; None for other texts.

    Equal for a range and its translation in most cases.
    """
    match = _PLAIN_RANGE.fullmatch(text)
    if match is None:
        return None
    first, joint, second = match.groups()
    sign = "/" if joint in "/⁄" else ":" if _TIME.fullmatch(text) else "-"
    return first.replace(",", "."), sign, second.replace(",", ".")


def range_currency(item: str) -> str:
    """Return the currency sign of a range such as `$5-10` or `5–10 €`; an empty text if it has none."""
    sign = CURRENCY_SIGN.search(item)
    return "" if sign is None else sign.group()


def may_have_range(item: str, text: str, target: str) -> bool:
    """Return whether a text has the numbers of a range: without them, `range_pattern` needs no compilation, of 1 ms."""
    match = _RANGE.fullmatch(CURRENCY_SIGN.sub("", item).strip())
    if match is None or item == "1/2":
        return True
    numbers = {_digits(number) for number in _NUMBERS.findall(text)}
    for number in (match[1], match[3]):
        if _digits(number) not in numbers:
            words = _words(number, target)
            if words is None or words.search(text) is None:
                return False
    return True


@lru_cache(maxsize=512)
def range_pattern(item: str, target: str) -> "regex.Pattern[str]":
    """Return a pattern of a range, a score or a fraction such as `3-5 km`, `3:2`, `1½`."""
    if item[-1] in _VULGAR:
        whole, fraction = item[:-1], _VULGAR[item[-1]]
        first, second = fraction.split("/")
        written = rf"{item[-1]}|{first}\s?[/⁄]\s?{second}" + (f"|{_HALF}" if fraction == "1/2" and not whole else "")
        # Not in `1½verse2`, which models make of `1½`.
        return regex.compile(rf"(?<![\d\w]){whole}\s?(?:{written})(?!\d|\p{{L}}{{1,40}}\d)", regex.IGNORECASE)
    currency = range_currency(item)
    match = _RANGE.fullmatch(CURRENCY_SIGN.sub("", item).strip())
    if match is None:
        return regex.compile(regex.escape(item))
    first, joint, second, unit = match.groups()
    if currency:
        either = rf"(?:{currency_pattern(currency, target).pattern})"
        numbers = rf"{_number(first, target)}(?:\s?{either})?{_JOINTS[joint]}(?:{either}\s?)?{_number(second, target)}"
        digits = r"(?![.,]?\d)"
        return regex.compile(
            rf"(?<!\w){either}\s?{numbers}{digits}|(?<![\w.,]){numbers}{digits}\s?{either}(?!\w)", regex.IGNORECASE
        )
    behind = "(?![\\d\\p{L}]|[.,]\\d)"
    if unit and is_percent(unit):
        behind = r"\s?(?:[%‰]|Prozent|percent|per cent|pour cent|por ciento|per cento|procent|por cento)"
    elif unit.isalpha() or unit[:1] == "°":
        behind = rf"{unit_pattern(unit, target).pattern}\p{{L}}*"
    half = f"|{_HALF}" if item == "1/2" else ""
    return regex.compile(
        rf"(?<![\d.,])(?<!\w)(?:{_number(first, target)}{_JOINTS[joint]}{_number(second, target)}{half}){behind}",
        regex.IGNORECASE,
    )


def scientific_pattern(item: str) -> "regex.Pattern[str] | None":
    """Return a pattern of a number with a power of ten; None if a number has none."""
    match = _SCIENTIFIC.fullmatch(item)
    if match is None:
        return None
    mantissa, sign, exponent = match.groups()
    power = r"[eE]" if sign in "eE" else r"\s?[×x·*⋅]\s?10\s?\^?"
    digits = regex.sub(r"\\?[.,]", "[.,]", regex.escape(mantissa))
    return regex.compile(rf"(?<![\d.,]){digits}{power}{regex.escape(exponent)}(?!\d)")


@lru_cache(maxsize=512)
def numeral_pattern(item: str, target: str) -> "regex.Pattern[str]":
    """Return a pattern of the value of a Roman numeral in digits and words."""
    value = _value_of(item.rstrip("."))
    words = [spelled(value, target, is_ordinal=ordinal) for ordinal in (True, False)]
    digits = rf"(?<!\w){value}(?:\.|st|nd|rd|th|er|e)?(?!\w)"
    return regex.compile("|".join([digits, *(f"(?i:{each.pattern})" for each in words if each is not None)]))


def digits_pattern(item: str) -> "regex.Pattern[str]":
    """Return a pattern of the same letters and digits, however they are divided, in no longer run of digits."""
    plus = r"(?:\+|00)\s?" if item.startswith(("+", "00")) else ""
    characters = (
        [each for each in item.removeprefix("00") if each.isalnum()] if plus else list(filter(str.isalnum, item))
    )
    between = r"[ \u00a0\u202f()/.\-‐‑]{0,3}"
    return regex.compile(rf"(?<![\w+]|\d[/.\-‐‑]){plus}\(?{between.join(characters)}(?!\w|[/.\-‐‑]\d)")


def address_pattern(item: str) -> "regex.Pattern[str]":
    """Return a pattern of an address, a path or a file that is no part of another one: `www.https://example.org`."""
    return regex.compile(rf"(?<![\w.@/\\-]){regex.escape(item)}(?!\w|[.@/\\-]\w)")


def keys_pattern(item: str) -> "regex.Pattern[str]":
    """Return a pattern of keys that are pressed together, with their English or their German names."""
    german = {theirs: key for key, theirs in KEY_NAMES.items()}
    keys = [each.strip() for each in item.split("+")]
    either = (regex.escape(key) + f"|{german.get(key, KEY_NAMES.get(key, ''))}".rstrip("|") for key in keys)
    pressed = r" ?\+ ?".join(f"(?:{names})" for names in either)
    return regex.compile(rf"(?<![\w+]){pressed}(?![\w+])")


def _number(number: str, target: str) -> str:
    digits = regex.sub(r"[.,]", "[.,]", number)
    words = _words(number, target)
    return digits if words is None else rf"(?:{digits}|{words.pattern})"


def _digits(number: str) -> str:
    return number.replace(",", ".").strip(".")


def _words(number: str, target: str) -> "regex.Pattern[str] | None":
    return spelled(int(number), target, is_ordinal=False) if number.isdecimal() and len(number) < 3 else None


def _value_of(numeral: str) -> int:
    values = [_VALUES[letter] for letter in numeral]
    following = [*values[1:], 0]
    return sum(-value if value < behind else value for value, behind in zip(values, following, strict=True))
