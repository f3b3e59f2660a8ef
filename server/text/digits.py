"""Comparison of the numbers of a text with those of its translation, in digits of any script.

Only lost and invented numbers count: order, separators, repetitions and the way of writing do not. A number is present
in the other text as well if that may hold it in words (by the table of its language), as a Roman or Han numeral, with a
word for a power of ten, on a clock of twelve hours, in short for a year, or in another calendar.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import pairwise

import regex

from server.text.number_forms import locale_of

_MAX_UNJUDGED = 12  # languages write numbers up to this in words, leave them out or express them otherwise
_MIN_DIGITS = 3  # significant digits that are hardly written in words: for a language without a table of number words
_MIN_ZEROS = 3  # of a word for a power of ten that either text may have
_LARGE = 1000  # the least value of a word that multiplies the number before it
_HOURS = 12
_YEARS = range(1000, 2200)
_MAX_WORD_CHARACTERS = 24
_MAX_SPELLINGS = 8
_MAX_POWER = 15
_BASES = (10**12, 10**9, 10**6, 1000, 100, 10)

_DIGIT = re.compile(r"\d")
_RUN = re.compile(r"\d+")
_TOKEN = re.compile(r"\d+(?:[.,'’٬٫·\u00a0\u202f\u2009]\d+)*")
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?:[ ]\d{3})+(?![\d])")
_GROUPED = re.compile(r"\d{1,3}(?:\D\d{2,4})*\D\d{3,4}")  # thousands, lakhs or myriads
_NUMERALS = regex.compile(r"(?:(?:\p{Nd}++(?:[.,]\p{Nd}++)*+)?+\p{nt=Nu})++(?:\p{Nd}++)?+")
_ROMAN = re.compile(r"\b(?=[IVXLC])C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})\b")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}

Reading = tuple[int, int]  # the digits of a value without the zeros at its end, and the power of ten they count


@dataclass(frozen=True, slots=True)
class NumberCheck:
    """Numbers of a source that its translation lacks, and numbers that only the translation has, as they stand."""

    missing: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()


def has_judged_numbers(text: str) -> bool:
    """Return whether a text has numbers to compare."""
    return _DIGIT.search(text) is not None


def compare(source: str, translation: str, source_language: str, target_language: str) -> NumberCheck:
    """Return the lost and the invented numbers of a translation; none for a language without CLDR data."""
    sources, targets = _TOKEN.findall(source), _TOKEN.findall(translation)
    if sources == targets or sorted(map(_plain, sources)) == sorted(map(_plain, targets)):
        return NumberCheck()
    source_locale, target_locale = locale_of(source_language), locale_of(target_language)
    if source_locale is None or target_locale is None:
        return NumberCheck()
    old, new = _Numbers(source, source_locale.language), _Numbers(translation, target_locale.language)
    return NumberCheck(_unique(old.lacking_in(new)), _unique([*new.lacking_in(old), *new.repeated_beyond(old)]))


@lru_cache(maxsize=4096)
def _plain(token: str) -> str:
    """Return a number in ASCII digits without leading zeros, with the same sign for every separator."""
    return "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else "." for sign in token).lstrip("0")


def _unique(numbers: Iterator[str] | list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(numbers))


@dataclass(frozen=True, slots=True)
class _Number:
    """A number in digits: its place and text, its runs of digits, the values it may have, the power of ten after it."""

    start: int
    end: int
    text: str
    runs: tuple[str, ...]
    readings: frozenset[Reading]
    power: int

    @property
    def parts(self) -> list[int]:
        """Return the values of its runs of digits."""
        return [int(run) for run in self.runs]

    def is_like(self, other: "_Number") -> bool:
        """Return whether both may be the same number with and without separators, or a word for a power of ten."""
        return _joined(self) == _joined(other) or any(
            digits == others and abs(power - other_power) >= _MIN_ZEROS
            for digits, power in self.readings
            for others, other_power in other.readings
        )

    def is_small(self) -> bool:
        """Return whether it is not judged."""
        if len(self.runs) == 1:
            return int(self.text) <= _MAX_UNJUDGED and len(self.text) < _MIN_DIGITS
        if self.power:
            return len(self.runs) == 2 and self.parts[1] in (0, 5)  # languages have words for one and a half
        return all(int(run) <= _MAX_UNJUDGED and len(run) < _MIN_DIGITS for run in self.runs)


class _Numbers:
    """The numbers of a text in one language."""

    def __init__(self, text: str, language: str) -> None:
        self._text = text
        self._language = language
        self._words = number_words(language)
        self._numbers = list(self._found())
        self._readings = {reading for number in self._numbers for reading in number.readings}
        self._parts = {part for number in self._numbers for part in number.parts}

    def lacking_in(self, other: "_Numbers") -> Iterator[str]:
        """Yield the numbers that another text cannot have in any form."""
        lacking = [number for number in self._numbers if not number.readings & other._readings]
        if not lacking:
            return
        unmatched = [number for number in other._numbers if not number.readings & self._readings]
        are_split = any(len(number.runs) > 1 for number in unmatched)
        others = {part for number in unmatched for part in number.parts}
        for number in lacking:
            if other._parts.issuperset(number.parts) or number.readings & other._numerals:
                continue
            if any(map(number.is_like, unmatched)) or (number.is_small() and not (are_split and len(number.runs) > 1)):
                continue
            if len(number.runs) > 1 and (are_split or any(len(run) >= _MIN_DIGITS for run in number.runs)):
                values = [digits * 10**power for digits, power in number.readings if 0 <= power <= _MAX_POWER]
                if not any(map(other._spells, values)):
                    yield number.text
            elif not all(self._is_excused(part, others, other) for part in number.parts):
                yield number.text

    def repeated_beyond(self, other: "_Numbers") -> list[str]:
        """Return the numbers written twice side by side that another text does not have so."""
        return list(self._doubled() - other._doubled())

    def _doubled(self) -> set[str]:
        return {
            _plain(first.text)
            for first, second in pairwise(self._numbers)
            if first.runs == second.runs
            and int("".join(first.runs)) > _MAX_UNJUDGED
            and not any(map(str.isalpha, self._text[first.end : second.start]))
        }

    def _is_excused(self, part: int, others: set[int], other: "_Numbers") -> bool:
        if part <= _MAX_UNJUDGED or part in other._parts:
            return True
        if not other._words and len(str(_reading(part)[0])) < _MIN_DIGITS:
            return True
        return self._is_put_otherwise(part, others, other) or other._spells(part)

    def _is_put_otherwise(self, part: int, others: set[int], other: "_Numbers") -> bool:
        if part <= 2 * _HOURS and (part - _HOURS in others or part + _HOURS in others):
            return True
        if part in _YEARS:
            offsets = calendar_offsets(other._language) | {-offset for offset in calendar_offsets(self._language)}
            return (
                not others.isdisjoint(part + offset for offset in offsets)
                or part % 100 in others
                or (part % 100 == 0 and part // 100 + 1 in others | other._small_numerals)
            )
        years = [year for year in other._parts if year in _YEARS]
        return any(part == year % 100 or (year % 100 == 0 and part == year // 100 + 1) for year in years)

    def _spells(self, value: int) -> bool:
        return any(all(map(self._has_word, values)) for values in _spellings(value))

    def _has_word(self, value: int) -> bool:
        return any(all(part in self._folded for part in form) for form in self._words.get(value, ()))

    @cached_property
    def _folded(self) -> str:
        return unicodedata.normalize("NFKC", self._text).casefold()

    @cached_property
    def _small_numerals(self) -> set[int]:
        return {digits * 10**power for digits, power in self._numerals if 0 <= power <= 2}

    @cached_property
    def _numerals(self) -> set[Reading]:
        romans = {_roman_value(numeral) for numeral in _ROMAN.findall(self._text)}
        hans = {value for match in _NUMERALS.finditer(self._text) if (value := _numeral_value(match[0]))}
        return {_reading(value) for value in romans} | {_reading_of(value) for value in hans}

    def _found(self) -> Iterator[_Number]:
        spans = [(*match.span(), _numeral_value(match[0])) for match in _NUMERALS.finditer(self._text)]
        spans += [(*match.span(), Decimal(match[0].replace(" ", ""))) for match in _SPACED.finditer(self._text)]
        for match in _TOKEN.finditer(self._text):
            runs = list(_RUN.finditer(self._text, *match.span()))
            readings = _readings(match[0], [run[0] for run in runs])
            for found in [match] if readings else runs:
                start, end = found.span()
                values = readings or {_reading(int(found[0]))}
                power = self._power_after(end)
                values |= {(digits, exponent + power) for digits, exponent in values}
                values |= {
                    _reading_of(value) for first, last, value in spans if value and first <= start and end <= last
                }
                yield _Number(start, end, found[0], tuple(_RUN.findall(found[0])), frozenset(values), power)

    def _power_after(self, end: int) -> int:
        """Return the power of ten of the word after a number."""
        rest = self._text[end : end + _MAX_WORD_CHARACTERS].lstrip(" -\u00a0\u202f").casefold()
        powers = [(len(word), power) for word, power in _powers(self._language) if rest.startswith(word)]
        return max(powers)[1] if powers else 0


def _joined(number: _Number) -> str:
    return _plain(number.text).replace(".", "")


def _reading(value: int) -> Reading:
    digits = str(value).rstrip("0")
    return (int(digits), len(str(value)) - len(digits)) if digits else (0, 0)


def _reading_of(value: Decimal) -> Reading:
    _, digits, exponent = value.normalize().as_tuple()
    return int("".join(map(str, digits))), int(exponent)


def _readings(token: str, runs: list[str]) -> set[Reading]:
    """Return the values of digits with separators between them; none for a list or a date."""
    joined = int("".join(runs))
    digits, power = _reading(joined)
    if len(runs) == 1:
        return {(digits, power)}
    found = {(digits, power)} if _GROUPED.fullmatch(token) else set()
    if len(runs) == 2 or _GROUPED.fullmatch(token[: -len(runs[-1]) - 1]):
        found.add((digits, power - len(runs[-1])))
    return found


def _roman_value(numeral: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in numeral]
    return sum(-value if value < after else value for value, after in pairwise([*values, 0]))


def _numeral_value(numeral: str) -> Decimal | None:
    """Return the value of numerals such as those of Chinese, with digits in them or without."""
    total = section = Decimal(0)
    last: Decimal | None = None
    for match in regex.finditer(r"\p{Nd}+(?:[.,]\p{Nd}+)*|.", numeral):
        if match[0][0].isdecimal():
            last = Decimal(_plain(match[0]).replace(".", "", max(_plain(match[0]).count(".") - 1, 0)) or 0)
            continue
        number = unicodedata.numeric(match[0], 0.5)
        if not number.is_integer():
            return None
        value = Decimal(int(number))
        if value < 10:
            last = value if last is None else last * 10 + value
        elif value < 10000:
            section += (1 if last is None else last) * value
            last = None
        else:
            total += (section + (last or 0) or 1) * value
            section, last = Decimal(0), None
    return total + section + (last or 0)


@lru_cache(maxsize=1024)
def _spellings(value: int) -> tuple[tuple[int, ...], ...]:
    """Return the values whose words make up a number, in several ways: 150 is a hundred and fifty."""
    found: list[tuple[int, ...]] = [(value,)]
    base = next((base for base in _BASES if base <= value), None)
    if base is None or value >= _BASES[0] * 1000:
        return tuple(found)
    factor, rest = divmod(value, base)
    heads = [(factor * base,), *([(base,)] if factor == 1 else ((*head, base) for head in _spellings(factor)))]
    tails = _spellings(rest) if rest else ((),)
    if base > 10 or factor > 1:
        found += [(*head, *tail) for head in heads[:_MAX_SPELLINGS] for tail in tails[:_MAX_SPELLINGS]]
    if value in _YEARS:
        century, year = divmod(value, 100)
        found += [(century, 100, year), (century, year)] if year else [(century, 100)]
        found += [(year,)] if year and year % 10 == 0 else []
    return tuple(found)


@lru_cache(maxsize=64)
def number_words(language: str) -> dict[int, tuple[tuple[str, ...], ...]]:
    """Return the words of numbers in a language, each as the beginnings of its words in lower case.

    It has none for a language without numbers up to one hundred.
    """
    words = _table(language)
    return words if _MAX_UNJUDGED + 1 in words else {}


@lru_cache(maxsize=64)
def _powers(language: str) -> tuple[tuple[str, int], ...]:
    """Return words for powers of ten in a language, and the powers."""
    return tuple(
        (form[0], _reading(value)[1])
        for value, forms in _table(language).items()
        for form in forms
        if value >= _LARGE and len(form) == 1
    )


@lru_cache(maxsize=64)
def calendar_offsets(language: str) -> frozenset[int]:
    """Return the numbers that the years of a language's calendars have more than those of the Gregorian calendar."""
    return frozenset(int(offset) for row in _rows("calendars.tsv", language) for offset in row[1].split())


@lru_cache(maxsize=64)
def _table(language: str) -> dict[int, tuple[tuple[str, ...], ...]]:
    return {
        int(value): tuple(tuple(form.split()) for form in words.split("|"))
        for _, value, words in _rows("number_words.tsv", language)
    }


def _rows(name: str, language: str) -> Iterator[list[str]]:
    with (files("server.text") / "data" / name).open(encoding="utf-8") as file:
        for line in file:
            if line.startswith(language + "\t"):
                yield line.rstrip("\n").split("\t")
