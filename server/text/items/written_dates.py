"""Dates whose month is a word: `3. Mai 2024`, `May 3rd`, `mayo de 2024`; and German ones without a year: `24.12.`."""

from collections.abc import Mapping
from datetime import date
from functools import lru_cache

import regex
from babel.dates import format_date, format_skeleton

from server.text.items.numbers import locale_of, ordinal_suffix

# Full names, in the case of a date, and abbreviations that are no words.
_NAMES: Mapping[str, str] = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "abbreviated": "Jan Feb Mar Apr - Jun Jul Aug Sept Oct Nov Dec",
    "abbreviated in German": "Jän Febr Mär - - - - - Sep Okt - Dez",
}
_MONTHS = {
    name.lower(): number for names in _NAMES.values() for number, name in enumerate(names.split(), 1) if name != "-"
}
_ABBREVIATED = "|".join(
    name for key, names in _NAMES.items() if key.startswith("abb") for name in names.split() if name != "-"
)
_FULL = "|".join(
    dict.fromkeys(
        rf"(?i:{name})" if name[0].islower() else name
        for key, names in _NAMES.items()
        if not key.startswith("abb")
        for name in sorted(names.split(), key=len, reverse=True)
    )
)
_ENGLISH = "|".join(_NAMES["en"].split())
MONTH = rf"(?:(?:{_FULL})(?!\w)|(?:{_ABBREVIATED})(?:\.|(?!\w)))"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:1\d|20)\d{2}(?![\w%]|[.,:/-]\d)"
_GERMAN_PREPOSITIONS = (
    "[Aa]m |[Vv]om |[Bb]is |[Zz]um |[Dd]e[mnrs] |[Aa]b |[Ss]eit |"
    r"(?<!\w)(?:(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch|(?:Mo|Di|Mi|Do|Fr|Sa|So)\.?), "
)

WRITTEN_DATE = (
    # First of all a digit, or a word before one: the names of months are tried at few positions.
    r"(?=\d|(?<!\w)\p{L}++\.?[ \u00a0](?:de[ \u00a0])?\d)"
    rf"(?:(?<![\w.,/:-]){_DAY}(?:\.|st|nd|rd|th|er|[º°ª])?[ \u00a0](?:(?:of|de)[ \u00a0])?{MONTH}"
    rf"(?:,?[ \u00a0](?:(?:of|de|del)[ \u00a0])?{_YEAR})?"
    rf"|(?<!\w)(?:(?:{_ENGLISH})(?!\w)|(?:{_ABBREVIATED})(?:\.|(?!\w)))[ \u00a0]{_DAY}(?:st|nd|rd|th)?"
    rf"(?![\w%]|[.,:/–-]\d)"
    rf"(?:,[ \u00a0]{_YEAR})?"
    rf"|(?<!\w){MONTH}[ \u00a0](?:de[ \u00a0])?{_YEAR}"
    rf"|(?<={_GERMAN_PREPOSITIONS}){_DAY}\.(?:0?[1-9]|1[0-2])\.(?![\w]))"
)
_WRITTEN = regex.compile(r"[^\W\d]{3}|^\d{1,2}\.\d{1,2}\.$")
_WITH_ORDINAL_DOTS = frozenset(
    ("de", "da", "nb", "nn", "no", "fi", "cs", "sk", "hu", "sl", "hr", "et", "lv", "is", "tr")
)
_ORDINAL_DOT = regex.compile(r"\d\.\s?\p{L}")
_ENGLISH_ORDINAL = regex.compile(r"(\d+)(st|nd|rd|th)(?!\w)")
_WORD_OR_NUMBER = regex.compile(r"\d+|[^\W\d]{3,}")


def month_names(language: str) -> list[str]:
    """Return the names of the months in a language such as `de`, in the case of a date."""
    return _NAMES[language].split()


def is_written(text: str) -> bool:
    """Return whether a date has a month in words, or no year."""
    return _WRITTEN.search(text) is not None


def written_parts(text: str, language: str) -> tuple[int, ...]:
    """Return the numbers of a date, that of its month among them, sorted."""
    months = _MONTHS | _months_of(language)
    parts: list[int] = []
    for word in _WORD_OR_NUMBER.findall(text.lower()):
        if word.isdecimal():
            parts.append(int(word))
        elif word in months:
            parts.append(months[word])
    return tuple(sorted(parts))


@lru_cache(maxsize=64)
def written_dates(language: str) -> "regex.Pattern[str]":
    """Return a pattern of dates with a month in words, in this language too."""
    names = "|".join(sorted(map(regex.escape, _months_of(language)), key=len, reverse=True))
    return regex.compile(
        rf"{WRITTEN_DATE}|(?<!\w)\d{{1,2}}\.?\s(?:{names})(?!\w)(?:\s\d{{4}})?|(?<!\w)(?:{names})\s\d{{4}}",
        regex.IGNORECASE,
    )


def is_unusual_date(date: str, language: str) -> bool:
    """Return whether a date in words has the ordinal of another language: `31. December`, `March 3th`."""
    language = language.partition("-")[0]
    ordinal = _ENGLISH_ORDINAL.search(date)
    if ordinal is not None and (language != "en" or ordinal[2] != ordinal_suffix(int(ordinal[1]))):
        return True
    return language not in _WITH_ORDINAL_DOTS and _ORDINAL_DOT.search(date) is not None


def localized_date(item: str, target: str) -> str:
    """Return a date in words as the target language writes it; as it is if it is none."""
    numbers = [(int(word), len(word)) for word in regex.findall(r"\d+", item)]
    month = next((_MONTHS[word] for word in _WORD_OR_NUMBER.findall(item.lower()) if word in _MONTHS), 0)
    year = next((number for number, digits in numbers if digits == 4), 0)
    days = [number for number, digits in numbers if digits <= 2]
    if not month and len(days) == 2:
        month = days.pop()
    if not month or len(days) > 1 or not (days or year):
        return item
    return _formatted(year, month, days[0] if days else None, target) or item


@lru_cache(maxsize=1024)
def _formatted(year: int, month: int, day: int | None, language: str) -> str | None:
    """Return a date as a language writes it, without its year if that is 0; None if there is no such day.

    Babel takes as long as the rest of what happens to a date.
    """
    try:
        when = date(year or 2000, month, 1 if day is None else day)
    except ValueError:
        return None
    locale = locale_of(language)
    if year and day is not None:
        return format_date(when, "long", locale=locale)
    return format_skeleton("yMMMM" if day is None else "MMMMd", when, locale=locale)


@lru_cache(maxsize=64)
def _months_of(language: str) -> dict[str, int]:
    months = locale_of(language).months["format"]
    names = {str(name).lower().rstrip("."): number for width in months for number, name in months[width].items()}
    return {name: number for name, number in names.items() if len(name) > 2}
