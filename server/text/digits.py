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

from server.text.number_forms import edits_of, locale_of, separators

_MAX_UNJUDGED = 12  # languages write numbers up to this in words, leave them out or express them otherwise
_MIN_DIGITS = 3  # significant digits that are hardly written in words: for a language without a table of number words
_MIN_ZEROS = 3  # of a word for a power of ten that either text may have
_MYRIAD = 10000
_LARGE = 1000  # the least value of a word that multiplies the number before it
_HOURS = 12
_YEARS = range(1000, 2200)
_HOUR = re.compile(r"(?<!\d)(?:[01]?\d|2[0-4])(?::|[ \u00a0\u202f]?[^\W\d_]{1,4}[ \u00a0\u202f]?)$")
_MAX_HOUR_CHARACTERS = 9
_CLOCK = re.compile(r"\d:\d\d")
_ROUNDS = (16, 32)  # of a knock-out: languages name it by its teams or by its matches
_QUARTERS = ("15", "30", "45")  # minutes that languages have words for
_ROUNDING = 0.14  # of a quantity in another unit; half as much for large ones
_ROUND = 100
_MAX_WORD_CHARACTERS = 24
_MAX_NUMBERS = 100
_MAX_DIGITS = 40  # of a number; longer ones are codes, which are not judged
_MAX_SHORT = 3  # characters of a word that is in many others by chance
_MAX_SPELLINGS = 8
_MAX_POWER = 15
_BASES = (10**12, 10**9, 10**6, 1000, 100, 10)

_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[^\W\d_]+²?")
_ABBREVIATION = re.compile(r"[ \u00a0\u202f]?([^\W\d_]{1,3})(?![^\W_])")
_RUN = re.compile(r"\d+")
_TOKEN = re.compile(r"\d+(?:[.,'’٬٫·\u00a0\u202f\u2009]\d+)*")
_SPACED = re.compile(r"(?<![\d.,])(\d{1,3}(?: \d{3})+)(?:[.,](\d{1,2}))?(?!\d)")
_GROUPED = re.compile(r"\d{1,3}(?:\D\d{3})+|\d{1,2}(?:\D\d{2})+\D\d{3}|\d{1,4}(?:\D\d{4}){2,}")
_DIGITS = r"\p{Nd}++(?:[.,]\p{Nd}++)*+"
_ROMAN = re.compile(r"\b(?=[IVXLC])C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?=[^\W\d_A-Z]{0,3}\b)")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}

Reading = tuple[int, int]  # the digits of a value without the zeros at its end, and the power of ten they count


@dataclass(frozen=True, slots=True)
class NumberCheck:
    """Numbers of a source that its translation lacks, and numbers that only the translation has, as they stand."""

    missing: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()

    @property
    def differ(self) -> int:
        """How many there are."""
        return len(self.missing) + len(self.invented)


NO_NUMBERS = NumberCheck()


def has_judged_numbers(text: str) -> bool:
    """Return whether a text has numbers to compare."""
    return _DIGIT.search(text) is not None


def compare(source: str, translation: str, source_language: str, target_language: str) -> NumberCheck:
    """Return the lost and the invented numbers of a translation.

    There are none in a language without CLDR data, and none in lists of more than 100 numbers.
    """
    sources, targets = _TOKEN.findall(source), _TOKEN.findall(translation)
    if sources == targets or sorted(map(_plain, sources)) == sorted(map(_plain, targets)):
        return NO_NUMBERS
    source_locale, target_locale = locale_of(source_language), locale_of(target_language)
    if source_locale is None or target_locale is None or max(len(sources), len(targets)) > _MAX_NUMBERS:
        return NO_NUMBERS
    old, new = _Numbers(source, source_locale.language), _Numbers(translation, target_locale.language)
    return NumberCheck(
        _unique(old.lacking_in(new)), _unique([*new.lacking_in(old, are_invented=True), *new.repeated_beyond(old)])
    )


def load_tables(source_language: str, target_language: str) -> None:
    """Load the tables of two languages: processes that are forked afterwards share them."""
    compare("1,013 1", "1,014 1", source_language, target_language)
    edits_of("1,013", source_language, target_language)


@lru_cache(maxsize=4096)
def _plain(token: str) -> str:
    """Return a number in ASCII digits without leading zeros, with the same sign for every separator."""
    return _plain_digits(token).lstrip("0")


def _plain_digits(token: str) -> str:
    if token.isascii() and token.isdecimal():
        return token
    return "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else "." for sign in token)


def _unique(numbers: Iterator[str] | list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(numbers))


@dataclass(frozen=True, slots=True)
class _Number:
    """A number in digits: its place and text, its runs of digits, and the values it may have.

    `abbreviation` is a short word after it, which may be one for a power of ten; None if any word may be one, because
    the language has no table of them.
    """

    start: int
    end: int
    text: str
    runs: tuple[str, ...]
    readings: frozenset[Reading]
    has_power: bool
    follows_hour: bool
    abbreviation: str | None

    @property
    def values(self) -> list[int]:
        """Return the whole numbers among the values it may have."""
        return [digits * 10**power for digits, power in self.readings if 0 <= power <= _MAX_POWER]

    @property
    def approximate_values(self) -> list[float]:
        """Return the values it may have."""
        return [digits * 10.0**power for digits, power in self.readings if abs(power) <= _MAX_POWER]

    @property
    def parts(self) -> list[int]:
        """Return the values of its runs of digits."""
        return [int(run) for run in self.runs]

    @property
    def keys(self) -> list[str]:
        """Return its runs of digits, the short ones without leading zeros."""
        return [run if len(run) >= _MIN_DIGITS else str(int(run)) for run in self.runs]

    def is_like(self, other: "_Number") -> bool:
        """Return whether both may be the same number with and without separators, or a word for a power of ten."""
        return (
            _digits_of(self.text) == _digits_of(other.text)
            or (self.runs[1:] == other.runs[1:] != () and abs(self.parts[0] - other.parts[0]) == _HOURS)
            or (
                (None in (self.abbreviation, other.abbreviation) or self.abbreviation != other.abbreviation)
                and any(
                    digits == others and abs(power - other_power) >= _MIN_ZEROS
                    for digits, power in self.readings
                    for others, other_power in other.readings
                )
            )
        )

    def is_small(self) -> bool:
        """Return whether it is not judged."""
        if len(self.runs) == 1:
            return int(self.text) <= _MAX_UNJUDGED and len(self.text) < _MIN_DIGITS
        if self.runs[1] in _QUARTERS and self.parts[0] <= _MAX_UNJUDGED:
            return True
        if self.has_power:
            return len(self.runs) == 2 and self.parts[1] in (0, 5)  # languages have words for one and a half
        return all(int(run) <= _MAX_UNJUDGED and len(run) < _MIN_DIGITS for run in self.runs)


class _Numbers:
    """The numbers of a text in one language."""

    def __init__(self, text: str, language: str) -> None:
        self._text = text
        self._language = language
        self._words = number_words(self._language)
        self._quantities: dict[int, list[float]] = {}
        self._numbers = list(self._found())
        self._readings = {reading for number in self._numbers for reading in number.readings}
        self._parts = {part for number in self._numbers for part in number.parts}
        self._keys = {key for number in self._numbers for key in number.keys}

    def lacking_in(self, other: "_Numbers", *, are_invented: bool = False) -> Iterator[str]:
        """Yield the numbers that another text, the translation or (`are_invented`) its source, cannot have."""
        lacking = [number for number in self._numbers if not number.readings & other._readings]
        if not lacking:
            return
        unmatched = [number for number in other._numbers if not number.readings & self._readings]
        are_split = any(len(number.runs) > 1 for number in unmatched)
        for number in lacking:
            is_single = len(number.runs) == 1
            if (
                (number.is_small() and (is_single or not are_split))
                or any(map(number.is_like, unmatched))
                or number.readings & other._numerals
                or (other._keys.issuperset(number.keys) and not any(key.startswith("00") for key in number.keys))
                or any(other._spells(value) and not self._spells(value) for value in number.values)
                or (number.follows_hour and number.text in _QUARTERS and self._has_lost_hour_of(number, other))
                or self._is_converted(number, other, other._numbers if are_invented else unmatched)
            ):
                continue
            if is_single or not (are_split or any(len(run) >= _MIN_DIGITS for run in number.runs)):
                others = {run for each in unmatched for run in (*each.keys, *each.runs)}
                if all(self._is_excused(part, others, other) for part in number.parts):
                    continue
            yield number.text

    def repeated_beyond(self, other: "_Numbers") -> list[str]:
        """Return the numbers written twice side by side that another text does not have so."""
        others = other._doubled(self)
        return [number for number in self._doubled(other) if number not in others]

    def _doubled(self, other: "_Numbers") -> list[str]:
        return [
            _plain(first.text)
            for first, second in pairwise(self._numbers)
            if first.runs == second.runs
            and (value := int("".join(first.runs))) > _MAX_UNJUDGED
            and self._text[first.end : second.start].isspace()
            # not two groups of thousands of one number, which the other text has
            and other._readings.isdisjoint((first.readings & second.readings) - {_reading(value)})
        ]

    def _is_excused(self, part: int, others: set[str], other: "_Numbers") -> bool:
        if part <= _MAX_UNJUDGED or part in other._parts:
            return True
        if not other._words and len(str(_reading(part)[0])) < _MIN_DIGITS:
            return True
        if part in _ROUNDS and any(f" {form[0]}" in f" {other._folded}" for form in other._words.get(part // 2, ())):
            return True
        return self._is_put_otherwise(part, others, other) or (other._spells(part) and not self._spells(part))

    def _is_put_otherwise(self, part: int, others: set[str], other: "_Numbers") -> bool:
        """Return whether an hour or a year is among the other text's numbers in another notation."""
        if part <= 2 * _HOURS and (self._has_time or other._has_time):
            hours = other._keys if _CLOCK.search(self._text) and _CLOCK.search(other._text) else others
            if not hours.isdisjoint((str(part - _HOURS), str(part + _HOURS))):
                return True
        if any(part - offset in _YEARS and str(part - offset) in others for offset in calendar_offsets(self._language)):
            return True
        if part in _YEARS:
            century, year = divmod(part, 100)
            return (
                any(str(part + offset) in others for offset in calendar_offsets(other._language))
                or f"{year:02}" in others
                or (year % 10 == 0 and str(year // 10 + 1) in others)
                or (year == 0 and (str(century + 1) in others or _reading(century + 1) in other._numerals))
            )
        years = [int(key) for key in others if len(key) == 4]
        return any(part in (year % 100, year // 100 + 1) for year in years)

    def _has_lost_hour_of(self, minute: _Number, other: "_Numbers") -> bool:
        """Return whether the hour before a minute is not in digits in another text, which may have words for both."""
        hour = self._numbers[self._numbers.index(minute) - 1].parts[-1]
        return other._parts.isdisjoint((hour, hour + _HOURS, hour - _HOURS))

    def _is_converted(self, number: _Number, other: "_Numbers", candidates: list[_Number]) -> bool:
        """Return whether a number is a quantity in another unit than in the other text.

        Candidates are the numbers of the other text that may be the same quantity. A translation may leave out one of
        two units that the source has next to each other.
        """
        measured = self._in_metric_units(number)
        if measured:
            place = self._numbers.index(number)
            neighbours = self._numbers[max(place - 1, 0) : place] + self._numbers[place + 1 : place + 2]
            if any(_is_near(value, measured) for each in neighbours + candidates for value in each.approximate_values):
                return True
            if any(_is_near(value, measured) and other._has_word(value) for value in range(1, _MAX_UNJUDGED + 1)):
                return True
        quantities = [other._spelled_quantities, *(other._in_metric_units(each) for each in candidates)]
        return any(_is_near(value, quantity) for quantity in quantities for value in number.approximate_values)

    @cached_property
    def _spelled_quantities(self) -> list[float]:
        """Return the quantities in metric units that small numbers in words may be, if the text has such a unit."""
        words = set(_WORD.findall(self._folded))
        found = [factors for word, factors in units(self._language).items() if word in words]
        values = [value for value in range(1, _MAX_UNJUDGED + 1) if self._has_word(value)] if found else []
        return [value * scale + offset for value in values for factors in found for scale, offset in factors]

    def _in_metric_units(self, number: _Number) -> list[float]:
        if number.start in self._quantities:
            return self._quantities[number.start]
        table = units(self._language)
        after = _WORD.findall(self._text[number.end : number.end + _MAX_WORD_CHARACTERS].casefold())[:2]
        before = _WORD.findall(self._text[max(number.start - _MAX_WORD_CHARACTERS, 0) : number.start].casefold())[-1:]
        found = [table[word] for word in (*after, *before) if word in table]
        if not found and after and after[0].upper() == after[0]:  # what follows may not be apart
            found = [table[after[0][:end]] for end in range(1, len(after[0])) if after[0][:end] in table]
        self._quantities[number.start] = [
            value * scale + offset
            for value in (number.approximate_values if found else ())
            for factors in found
            for scale, offset in factors
        ]
        return self._quantities[number.start]

    def _spells(self, value: int) -> bool:
        if any(all(map(self._has_word, values)) for values in _spellings(value)):
            return True
        # Compounds may change the word for the ones, but a word for the same tens with other ones is another number.
        tens, ones = divmod(value, 10)
        return (
            1 < tens < 10
            and ones > 0
            and self._has_word(10 * tens)
            and not any(self._has_word(10 * tens + other) for other in range(1, 10))
        )

    def _has_word(self, value: int) -> bool:
        return any(all(map(self._has_beginning, form)) for form in self._words.get(value, ()))

    def _has_beginning(self, word: str) -> bool:
        is_apart = word.upper() != word or _is_right_to_left(word)
        if len(word) > (_MAX_SHORT if is_apart else 1):
            return word in self._folded
        before = r"\w{0,2}" if len(word) == _MAX_SHORT and _is_right_to_left(word) else ""
        return re.search(rf"\b{before}{re.escape(word)}\w{{0,{len(word)}}}\b", self._folded) is not None

    @cached_property
    def _has_time(self) -> bool:
        """Return whether a clock time with minutes or a word for a part of the day is in the text."""
        return bool(_CLOCK.search(self._text) or day_periods(self._language).search(self._folded.replace(".", "")))

    @cached_property
    def _folded(self) -> str:
        return unicodedata.normalize("NFKC", self._text).casefold()

    @cached_property
    def _numerals(self) -> set[Reading]:
        romans = {_roman_value(numeral) for numeral in _ROMAN.findall(self._text)}
        return {_reading(value) for value in romans} | {_reading_of(value) for _, _, value in self._compounds}

    @cached_property
    def _compounds(self) -> list[tuple[int, int, Decimal]]:
        """Return the start, end and value of numbers with signs or words for powers of ten in them or after them."""
        pattern, token, factors = _numeral_patterns(self._language)
        found = [
            (*match.span(), value)
            for match in pattern.finditer(self._text)
            if (value := _numeral_value(token.findall(match[0]), factors))
        ]
        return found + [
            (*match.span(), Decimal(f"{match[1].replace(' ', '')}.{match[2] or 0}"))
            for match in _SPACED.finditer(self._text)
        ]

    def _found(self) -> Iterator[_Number]:
        for match in _TOKEN.finditer(self._text):
            if len(match[0]) > _MAX_DIGITS:
                continue
            runs = list(_RUN.finditer(self._text, *match.span()))
            readings = _readings(match[0], [run[0] for run in runs], self._group_separator)
            for found in [match] if readings else runs:
                start, end = found.span()
                values = readings or {_reading(int(found[0]))}
                powers = self._powers_after(end)
                values |= {(digits, exponent + power) for digits, exponent in values for power in powers}
                values |= {
                    _reading_of(value) for first, last, value in self._compounds if first <= start and end <= last
                }
                texts = tuple(_plain_digits(run) for run in _RUN.findall(found[0]))
                follows_hour = _HOUR.search(self._text, max(start - _MAX_HOUR_CHARACTERS, 0), start) is not None
                yield _Number(
                    start,
                    end,
                    found[0],
                    texts,
                    frozenset(values),
                    bool(powers),
                    follows_hour,
                    self._abbreviation_after(end),
                )

    @cached_property
    def _group_separator(self) -> str:
        found = separators(self._language)
        return "" if found is None else found[1]

    def _abbreviation_after(self, end: int) -> str | None:
        if not _powers(self._language):
            return None
        found = _ABBREVIATION.match(self._text, end)
        return "" if found is None else found[1].casefold()

    def _powers_after(self, end: int) -> set[int]:
        """Return the powers of ten that the word after a number may mean: beginnings of words are ambiguous."""
        rest = self._text[end : end + _MAX_WORD_CHARACTERS].lstrip(" -\u00a0\u202f").casefold()
        if not rest[:1].isalpha():
            return set()
        found = [(len(word), power) for word, power in _powers(self._language) if rest.startswith(word)]
        return {power for length, power in found if length == max(found)[0]}


def _digits_of(text: str) -> str:
    """Return the digits of a number in ASCII, without its separators and the zeros before it."""
    return _plain(text).replace(".", "").lstrip("0")


def _is_right_to_left(word: str) -> bool:
    return unicodedata.bidirectional(word[0]) in ("AL", "R")


def _is_near(value: float, others: list[float]) -> bool:
    return any(abs(value - other) <= (_ROUNDING if value < _ROUND else _ROUNDING / 2) * abs(other) for other in others)


def _reading(value: int) -> Reading:
    digits = str(value).rstrip("0")
    return (int(digits), len(str(value)) - len(digits)) if digits else (0, 0)


def _reading_of(value: Decimal) -> Reading:
    _, digits, exponent = value.normalize().as_tuple()
    return int("".join(map(str, digits))), int(exponent)


def _readings(token: str, runs: list[str], group_separator: str) -> set[Reading]:
    """Return the values of digits with separators between them; none for a list or a date.

    Groups of thousands with the language's own separator are not decimals.
    """
    joined = int("".join(runs))
    digits, power = _reading(joined)
    if len(runs) == 1:
        return {(digits, power)}
    found = {(digits, power)} if _GROUPED.fullmatch(token) else set()
    is_grouped = bool(found) and set(re.sub(r"\d", "", token)) == {group_separator} and runs[0] != "0"
    if not is_grouped and runs[-1] != "000" and (len(runs) == 2 or _GROUPED.fullmatch(token[: -len(runs[-1]) - 1])):
        found.add((digits, power - len(runs[-1])))
    return found


def _roman_value(numeral: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in numeral]
    return sum(-value if value < after else value for value, after in pairwise([*values, 0]))


def _numeral_value(tokens: list[str], factors: dict[str, int]) -> Decimal | None:
    """Return the value of numerals such as those of Chinese, with digits among them or without."""
    total = section = Decimal(0)
    last: Decimal | None = None
    for token in tokens:
        if len(token) > _MAX_DIGITS:
            return None
        if token[0].isdecimal():
            last = _decimal_value(token)
            continue
        number = factors.get(token) or float(unicodedata.numeric(token, -1) or 0)
        if number < 0 or not float(number).is_integer():
            return None  # a fraction, or a sign that Python's version of Unicode lacks
        value = Decimal(int(number))
        if value < 10:
            last = value if last is None else last * 10 + value
        elif value < _MYRIAD:
            section += (1 if last is None else last) * value
            last = None
        else:
            total += (section + (last or 0) or 1) * value
            section, last = Decimal(0), None
    return total + section + (last or 0)


def _decimal_value(token: str) -> Decimal:
    if token.isdecimal() or _GROUPED.fullmatch(token):
        return Decimal(_digits_of(token) or 0)
    whole, _, fraction = _plain_digits(token).rpartition(".")
    return Decimal(f"{whole.replace('.', '')}.{fraction}")


@lru_cache(maxsize=64)
def _numeral_patterns(language: str) -> tuple[regex.Pattern[str], regex.Pattern[str], dict[str, int]]:
    """Return patterns of compound numerals and of their parts, and a language's words for powers of ten in them."""
    factors = {
        form[0]: value
        for value, forms in _table(language).items()
        for form in forms
        if value >= 100 and len(form) == 1 and form[0].upper() == form[0]
    }
    words = "|".join(map(regex.escape, sorted(factors, key=len, reverse=True)))
    sign = rf"(?:{words}|\p{{nt=Nu}})" if words else r"\p{nt=Nu}"
    after_digits = rf"{_DIGITS}[ ]?{sign}(?:[ ]?{_DIGITS}[ ]?{sign}|{sign})*+(?:[ ]?{_DIGITS})?+"
    return regex.compile(rf"{after_digits}|\p{{nt=Nu}}++"), regex.compile(rf"{_DIGITS}|{sign}"), factors


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
    if base > _BASES[-1] or factor > 1:
        found += [(*head, *tail) for head in heads[:_MAX_SPELLINGS] for tail in tails[:_MAX_SPELLINGS]]
    if value in _YEARS:
        century, year = divmod(value, 100)
        found += [(century, 100, year), (century, year)] if year else [(century, 100)]
        found += [(century + 1,)] if year == 0 else []
        found += [(year,), (year // 10 + 1,)] if year > _BASES[-1] and year % _BASES[-1] == 0 else []
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
def day_periods(language: str) -> re.Pattern[str]:
    """Return a pattern of a number next to words for a part of the day in a language, without full stops."""
    locale = locale_of(language)
    forms = locale.day_periods["format"] if locale is not None else {}
    names = {name.replace(".", "").casefold() for width in ("abbreviated", "wide") for name in forms[width].values()}
    after = "|".join(map(re.escape, sorted(names)))
    before = "|".join(re.escape(name) for name in sorted(names) if len(name) > len("pm"))
    return re.compile(rf"(?<!\d)\d{{1,2}}\W{{0,2}}(?:\w{{1,20}}\W)?(?:{after})|(?:{before})\W{{0,2}}\d")


@lru_cache(maxsize=64)
def units(language: str) -> dict[str, tuple[tuple[float, float], ...]]:
    """Return the words for units that metric countries convert, with scales and offsets to metric units."""
    return {
        word: tuple((float(scale), float(offset)) for scale, offset in map(str.split, factors.split("|")))
        for _, factors, words in _rows("units.tsv", language)
        for word in words.split("|")
    }


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
