"""Items of a sentence found again in its translation: numbers by value, everything else letter by letter."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from unicodedata import normalize

import regex

from server.interface.interruption import checkpoint
from server.text.items.clock_times import find_time
from server.text.items.compounds import (
    RANGES,
    address_pattern,
    digits_pattern,
    keys_pattern,
    may_have_range,
    numeral_pattern,
    plain_range,
    range_pattern,
    scientific_pattern,
)
from server.text.items.kinds import NUMERIC, ItemKind
from server.text.items.numbers import (
    DECADES,
    date_parts,
    is_negative,
    readings,
    value_in,
    without_ordinal,
)
from server.text.items.patterns import CURRENCY_CODES, CURRENCY_SIGNS, CURRENCY_WORDS, NUMBERS
from server.text.items.words import currency_pattern, is_percent, magnitude_at, spelled, unit_pattern
from server.text.items.written_dates import is_written, written_dates, written_parts

Range = tuple[int, int]  # of characters

_DIGIT = regex.compile(r"\d")
_DATES = regex.compile(r"(?<![\w])\d{1,4}(?P<sign>[./-])\s?\d{1,2}(?P=sign)\s?\d{1,4}(?!\d)")
_CURRENCY = regex.compile(rf"{CURRENCY_SIGNS}|{CURRENCY_CODES}|{CURRENCY_WORDS}")
_NEAR = 28  # characters between a number and the name of its currency, with a magnitude between them
_OWN_WORDS = regex.compile(rf"(?:(?!{CURRENCY_SIGNS}\d)\D)*+")  # those of the next number are not
_MAX_SPELLED = 12
# Letters right behind a number, unless they are those of an ordinal, of a decade or of a compound.
_GLUED = regex.compile(
    r"(?!(?:st|nd|rd|th|[ap]m|s|e|er|ers|ern?|ste[nrsm]?|te[nrsm]?|ème|º|ª|x|k|mal|fach\w*|prozentig\w*|jährig\w*|tägig\w*|"
    r"stündig\w*|köpfig\w*|er-\w+)(?!\w))\p{L}"
)
_MINUTES = regex.compile(r":(?!00)[0-5]\d(?!\d)")
_HOUR = regex.compile(r"(?<!\d)\d{1,2}:$")
_BRACKETS = frozenset("(){}[]")
_MINUS = ("minus ", "moins ", "menos ", "meno ")
_CLASSES = {
    **dict.fromkeys(("“", "”", "„", "‟", "«", "»", '"'), r"[“”„‟«»\"]|''|,,|``"),
    **dict.fromkeys(("–", "—", "-", "--"), r"(?<!\S)-{1,2}(?=\s)|--|[–—−‒]"),
    "x": r"(?<!\S)[x×](?!\S)",
    "+/-": r"\+/?-|±",
    **dict.fromkeys(("…", "..."), r"…|\.{2,}+|\. \. \."),
    **dict.fromkeys("'‘’‚‹›", r"(?<!\p{L})['‘’‚‛‹›`´“”„‟«»\"]|['‘’‚‛‹›`´“”„‟«»\"](?!\p{L})"),
}


@dataclass(slots=True)
class _Number:
    """A number of an answer."""

    start: int
    end: int
    text: str
    values: set[Decimal]


@dataclass(slots=True)
class Answer:
    """A translation in which items are looked for. Each of its parts is the counterpart of one item only."""

    text: str
    source_language: str
    target_language: str
    _numbers: list[_Number] | None = None
    _is_taken: bytearray = field(init=False)  # by character: 1,000 quotation marks would be compared with each other
    _searched: dict["regex.Pattern[str]", int] = field(default_factory=dict)  # how far, as nothing becomes free again

    def __post_init__(self) -> None:
        """Begin with nothing taken."""
        self._is_taken = bytearray(len(self.text))

    def find(self, items: Sequence[tuple[ItemKind, str]]) -> list[Range | None]:
        """Return the range of each item, None for one that was lost; one with more letters is looked for first."""
        found: list[Range | None] = [None] * len(items)
        order = sorted(range(len(items)), key=lambda index: (items[index][0] in _LATE, -len(items[index][1]), index))
        for index in order:
            checkpoint()
            found[index] = self._take(*items[index])
        return found

    def free_numbers(self) -> list[Range]:
        """Return the ranges of dates and numbers that are no counterpart of an item, with the signs between digits."""
        if not any(self._is_free(match.span()) for match in _DIGIT.finditer(self.text)):
            return []  # without the long pattern of dates
        dates = [match.span() for match in written_dates(self.target_language).finditer(self.text)]
        runs = [match.span() for match in _LONG_NUMBERS.finditer(self.text)]
        runs = [run for run in runs if all(run[1] <= start or end <= run[0] for start, end in dates)]
        return [run for run in sorted([*dates, *runs]) if self._is_free(run)]

    def _take(self, kind: ItemKind, item: str) -> Range | None:
        found = _FINDERS.get(kind, _verbatim)(self, item)
        if found is not None:
            self.take(found)
        return found

    def take(self, found: Range) -> None:
        """Make a range the counterpart of an item."""
        start, end = found
        self._is_taken[start:end] = b"\1" * (end - start)

    def _is_free(self, found: Range) -> bool:
        return self._is_taken.find(1, *found) < 0

    def first(self, pattern: "regex.Pattern[str]", accept: Callable[[Range], bool] | None = None) -> Range | None:
        """Return the first free match that is accepted."""
        begin = self._searched.get(pattern, 0) if accept is None else 0
        for match in pattern.finditer(self.text, begin):
            if match.start() < match.end() and self._is_free(match.span()):
                if accept is None:
                    self._searched[pattern] = match.start()
                    return match.span()
                if accept(match.span()):
                    return match.span()
        return None

    def has_currency(self, number: _Number, currency: str) -> bool:
        """Return whether a currency stands beside a number, perhaps behind a magnitude."""
        own = _OWN_WORDS.match(self._behind(number))
        around = self.text[max(number.start - 5, 0) : number.start] + " " + ("" if own is None else own.group())
        return currency_pattern(currency, self.target_language).search(around) is not None

    def has_unit(self, number: _Number, unit: str) -> bool:
        """Return whether a unit or a percent sign stands beside a number; no unit always does."""
        if unit in ("%", "‰"):
            return is_percent(self._behind(number)) or self.text[number.start - 1 : number.start] == "%"
        return not unit or unit_pattern(unit, self.target_language).match(self._behind(number)) is not None

    def _behind(self, number: _Number) -> str:
        return self.text[number.end : number.end + _NEAR]

    @property
    def numbers(self) -> list[_Number]:
        """The free numbers."""
        if self._numbers is None:
            self._numbers = [
                _Number(*match.span(), match.group(), readings(match.group()))
                for match in NUMBERS.finditer(self.text)
                if not self._is_in_time(match.span())
            ]
        return [each for each in self._numbers if self._is_free((each.start, each.end))]

    def _is_in_time(self, number: Range) -> bool:
        """Return whether a number is that of an hour with minutes, or the minutes."""
        start, end = number
        has_hour = end - start == 2 and _HOUR.search(self.text, max(start - 3, 0), start) is not None
        return has_hour or _MINUTES.match(self.text, end) is not None


def _verbatim(answer: Answer, item: str) -> Range | None:
    before = r"(?<!\w)" if item[:1].isalnum() or item[:1] == "_" else ""
    behind = r"(?!\w)" if item[-1:].isalnum() or item[-1:] == "_" else ""
    return answer.first(regex.compile(before + regex.escape(item) + behind))


def _digits(answer: Answer, item: str) -> Range | None:
    return _verbatim(answer, item) if item[0] in "*•xX" else answer.first(digits_pattern(item))


def _address(answer: Answer, item: str) -> Range | None:
    return answer.first(address_pattern(item))


def _identifier(answer: Answer, item: str) -> Range | None:
    found = _verbatim(answer, item)
    if found is not None or (item.isascii() and "+" not in item):
        return found
    return answer.first(keys_pattern(item)) if item.isascii() else _verbatim(answer, normalize("NFKC", item))


def _code(answer: Answer, item: str) -> Range | None:
    return answer.first(regex.compile(rf"(?<![^\W_]){regex.escape(item)}(?![^\W_])", regex.IGNORECASE))


def _placeholder(answer: Answer, item: str) -> Range | None:
    """Find a placeholder, also with blanks beside its brackets: `{count }`."""
    found = _verbatim(answer, item)
    if found is not None or _BRACKETS.isdisjoint(item):
        return found
    opened = regex.sub(r"\\[({\[]", r"\g<0>\\s?", regex.escape(item))
    return answer.first(regex.compile(regex.sub(r"\\[)}\]]", r"\\s?\g<0>", opened)))


def _version(answer: Answer, item: str) -> Range | None:
    """Find a version, also one that the model wrote as a decimal of the target language."""
    return _verbatim(answer, item) or (_verbatim(answer, item.replace(".", ",")) if item.count(".") == 1 else None)


def _sign(answer: Answer, item: str) -> Range | None:
    pattern = _CLASSES.get(item)
    if pattern is None and _CURRENCY.fullmatch(item):
        return answer.first(currency_pattern(item, answer.target_language))
    return answer.first(regex.compile(pattern or regex.escape(item)))


def _date(answer: Answer, item: str) -> Range | None:
    if "T" in item:
        return _verbatim(answer, item)
    wanted = written_parts(item, answer.source_language) if is_written(item) else date_parts(item)
    exact = answer.first(_DATES, lambda found: date_parts(answer.text[slice(*found)]) == wanted)
    return exact or answer.first(
        written_dates(answer.target_language),
        lambda found: written_parts(answer.text[slice(*found)], answer.target_language) == wanted,
    )


def _range(answer: Answer, item: str) -> Range | None:
    if (wanted := plain_range(item)) is not None:
        found = answer.first(RANGES, lambda found: plain_range(answer.text[slice(*found)]) == wanted)
        if found is not None:
            return found
    if not may_have_range(item, answer.text, answer.target_language):
        return None
    return answer.first(range_pattern(item, answer.target_language))


def _numeral(answer: Answer, item: str) -> Range | None:
    return _verbatim(answer, item.rstrip(".")) or answer.first(numeral_pattern(item, answer.target_language))


def _number(answer: Answer, item: str) -> Range | None:
    """Find a number, with its percent sign, currency, unit and magnitude."""
    match = NUMBERS.search(item)
    value = None if match is None else value_in(match.group(), answer.source_language)
    if match is None or value is None:
        return _verbatim(answer, item)
    if (scientific := scientific_pattern(item)) is not None:
        return answer.first(scientific)
    text, before, behind = match.group(), item[: match.start()].strip(), item[match.end() :].strip()
    is_digits = text.lstrip("-−+±").isdecimal()
    is_code = is_digits and len(text) > 1 and text[0] == "0"
    currency = _CURRENCY.search(before) or _CURRENCY.search(behind)
    power = magnitude_at(behind.upper() if currency and len(behind) == 1 else behind, answer.source_language)
    if power and (copied := _verbatim(answer, item)) is not None:
        return copied  # with a magnitude that the target language does not have: `$12.5bn`
    is_decade = behind in DECADES.values() and item.endswith(f"0{behind}")  # `1990s`, and no `9.58 s`
    unit = "" if power or is_decade else without_ordinal(behind)
    for number in answer.numbers:
        if is_code and number.text != text:
            continue
        if not unit and not power and currency is None and _GLUED.match(answer.text, number.end):
            continue
        if not _has_value(answer, number, value, power) or (is_negative(text) and not _is_negative(answer, number)):
            continue
        if answer.has_currency(number, currency.group()) if currency is not None else answer.has_unit(number, unit):
            return number.start, number.end
    if currency is None and is_digits and not is_code and not power and not unit and value <= _MAX_SPELLED:
        words = spelled(int(value), answer.target_language, is_ordinal=bool(behind))
        return None if words is None else answer.first(words)
    return None


def _is_negative(answer: Answer, number: _Number) -> bool:
    return is_negative(number.text) or answer.text[: number.start].lower().endswith(_MINUS)


def _has_value(answer: Answer, number: _Number, value: Decimal, power: int) -> bool:
    its_power = magnitude_at(answer.text[number.end : number.end + _NEAR], answer.target_language)
    if not power:
        return value in number.values
    return any(value.scaleb(power) == each.scaleb(its_power) for each in number.values)


_LONG_NUMBERS = regex.compile(r"(?<!\w)[+-]?\d++(?:(?:[.,:'’/\u00a0\u202f–-]| (?=\d{3}(?!\d)))++\d++)*+")
# Looked for when everything else has its counterpart: plain numbers may be a part of the others, and so may signs.
_LATE = {ItemKind.NUMBER: 1, ItemKind.SIGN: 2}
_FINDERS: dict[ItemKind, Callable[[Answer, str], Range | None]] = {
    **dict.fromkeys(NUMERIC, _number),
    **dict.fromkeys((ItemKind.URL, ItemKind.EMAIL, ItemKind.PATH, ItemKind.FILE), _address),
    ItemKind.IDENTIFIER: _identifier,
    ItemKind.VERSION: _version,
    ItemKind.PLACEHOLDER: _placeholder,
    ItemKind.PHONE: _digits,
    ItemKind.ACCOUNT: _digits,
    ItemKind.CODE: _code,
    ItemKind.RANGE: _range,
    ItemKind.NUMERAL: _numeral,
    ItemKind.DATE: _date,
    ItemKind.TIME: lambda answer, item: find_time(answer, item) or _verbatim(answer, item),  # `12:05 am` in German
    ItemKind.SIGN: _sign,
}
