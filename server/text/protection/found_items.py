"""Items and substitutes found in a model's answer, and what replaces them there."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import regex

from server.text.items.clock_times import is_unusual
from server.text.items.kinds import NUMERIC, PLACED, VALUES, ItemKind
from server.text.items.notation import localized, localized_number
from server.text.items.numbers import separators, value_in
from server.text.items.patterns import NUMBERS
from server.text.items.survival import Answer
from server.text.items.words import has_number_word
from server.text.protection.means import Means
from server.text.protection.model_input import InputItem
from server.text.protection.substitutes import find_substitute, substitute_number
from server.text.protection.word_alignment import Range

_READ_AS_NUMBERS = (Means.AS_IS, Means.STAND_IN)
_SIGNS_BESIDE = regex.compile(r"(?:[$€£¥] ?)?\d[\d.,'’ \u00a0\u202f]*(?<=\d)(?: ?[$€£¥%])?")
_ENGLISH_ORDINAL = regex.compile(r"(?:st|nd|rd|th)(?!\w)")
_BEHIND_TIME = regex.compile(r"(?:\s?[ap]\.?|\.)m\b(?:\.(?!$))?|\s(?:o['’])?clock\b|(?P<hour> Uhr\b)", regex.IGNORECASE)
# Models that often read times write these behind scores, too.
_CLOCK = regex.compile(r"\s(?:Uhr|[ap]\.?m\b(?:\.(?!$))?|o['’]clock)(?!\w)", regex.IGNORECASE)
_CORRECTABLE = (VALUES - {ItemKind.NUMERAL}) | {ItemKind.CODE, ItemKind.VERSION}


@dataclass(frozen=True, slots=True)
class Notation:
    """The languages of a translation, and whether numbers change to the notation of the second."""

    source: str
    target: str
    localizes: bool = True

    def of(self, kind: ItemKind, item: str) -> str:
        """Return an item as the target language writes it."""
        return localized(kind, item, self.source, self.target) if self.localizes else item

    def of_number(self, item: str) -> str:
        """Return the number of an item as the target language writes it."""
        number = substitute_number(item)
        return localized_number(number, self.source, self.target) if self.localizes else number


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item in an answer: `output` takes the place of the answer's text there, unless it is None."""

    item: InputItem
    start: int
    end: int
    output: str | None
    means: Means


@dataclass(slots=True)
class FoundItems:
    """The items that an answer has, those that it lost, and whether it has a number that its source has not."""

    found: list[FoundItem]
    lost: list[InputItem]
    has_invented: bool = False


def find_items(
    text: str, sentence: str, items: Sequence[InputItem], notation: Notation, *, corrects: bool
) -> FoundItems:
    """Find what stands in an answer `text` for each item of a model input `sentence`.

    Items that are placed later are neither found nor lost.

    With `corrects` a lost number is put in the place of the one number that the model wrote instead.
    """
    answer = Answer(text, notation.source, notation.target)
    result = FoundItems([], [])
    has_clock = _CLOCK.search(sentence) is not None
    read = [item for item in items if item.means is not Means.PLACED]
    for item in read:
        if item.means in (Means.NAME, Means.REQUIRED):
            span = find_substitute(text, item.shown, is_inflected=corrects)
            if span is None:
                result.lost.append(item)
            else:
                answer.take(span)
                result.found.append(FoundItem(item, *span, None, item.means))
    others = [item for item in read if item.means in (Means.AS_IS, Means.STAND_IN)]
    spans = answer.find([(item.kind, item.shown) for item in others])
    places: dict[str, tuple[list[int], list[int]]] = {}
    for item, span in zip(others, spans, strict=True):
        if span is not None and item.kind in PLACED:
            if item.shown not in places:
                places[item.shown] = _places(sentence, item.shown), _places(text, item.shown)
            span = _of_same_rank(*places[item.shown], item, span)
        if span is None or (item.means is Means.STAND_IN and not _is_unique(text, item, span)):
            result.lost.append(item)
        elif item.means is Means.STAND_IN:
            result.found.append(FoundItem(item, *span, _instead_of_stand_in(item, notation), item.means))
        else:
            output = _instead_of_copy(item, text, span, notation)
            found = _with_suffix(FoundItem(item, *span, output, item.means), text, notation)
            if item.kind is ItemKind.RANGE and not has_clock and (clock := _CLOCK.match(text, found.end)):
                found = replace(found, end=clock.end())
            result.found.append(found)
    if corrects and result.lost:
        _correct(text, answer, result, notation)
    elif not result.lost:
        result.has_invented = _has_invented(answer, sentence, items)
    return result


def _has_invented(answer: Answer, sentence: str, items: Sequence[InputItem]) -> bool:
    """Return whether an answer has a number of which the model input has neither digits nor a word."""
    free = [answer.text[slice(*span)] for span in answer.free_numbers()]
    return (
        bool(free)
        and any(item.kind in VALUES for item in items)
        and not has_number_word(sentence, answer.source_language)
    )


def with_equal_marks(found: Sequence[FoundItem], placed: Sequence[InputItem], text: str) -> list[FoundItem]:
    """Return found items with straight quotation marks as in the source if some are straight in the answer, or placed.

    Models write one of a pair straight and the other curly.
    """
    if '"' not in text and all(sign.text != '"' for sign in placed):
        return list(found)
    return [replace(each, output='"') if each.item.text == '"' else each for each in found]


def _places(text: str, sign: str) -> list[int]:
    """Return where a sign begins in a text, each time that it is there."""
    places: list[int] = []
    start = text.find(sign)
    while start >= 0:
        places.append(start)
        start = text.find(sign, start + len(sign))
    return places


def _of_same_rank(in_sentence: Sequence[int], in_text: Sequence[int], item: InputItem, span: Range) -> Range:
    """Return the place of a sign that is as often in the answer as in the model input, as an item or otherwise."""
    if len(in_sentence) < 2 or len(in_text) != len(in_sentence):
        return span
    start = in_text[bisect_right(in_sentence, item.start - len(item.shown))]
    return start, start + len(item.shown)


def _is_unique(text: str, item: InputItem, span: Range) -> bool:
    number = substitute_number(item.shown)
    written = text[slice(*span)]
    return text.count(written) == 1 and (written == number or number not in text)


def _instead_of_stand_in(item: InputItem, notation: Notation) -> str | None:
    """Return the number of an item whose unit is in the answer; None for all of the item."""
    return notation.of_number(item.text) if item.span.kind in NUMERIC else None


def _instead_of_copy(item: InputItem, text: str, span: Range, notation: Notation) -> str:
    """Return what the model wrote, in the notation of the target language if it copied that of the source."""
    written = text[slice(*span)]
    kind = item.kind
    if kind is ItemKind.VERSION or (kind is ItemKind.IDENTIFIER and not item.text.isascii()):
        return item.text
    if not notation.localizes or kind not in VALUES:
        return written
    if kind in NUMERIC:
        match = NUMBERS.search(item.text)
        is_copied = match is not None and written == match.group() and not _reads_alike(written, notation)
        if is_copied or _is_foreign(written, notation):
            return notation.of_number(item.text)
        return written
    is_copied = written == item.text or (kind is ItemKind.TIME and is_unusual(written, notation.target))
    return notation.of(kind, item.text) if is_copied else written


def _is_foreign(number: str, notation: Notation) -> bool:
    """Return whether a number has separators that the target language does not write."""
    return any(each not in separators(notation.target) for each in number[1:] if not each.isdecimal())


def _reads_alike(number: str, notation: Notation) -> bool:
    return localized_number(number, notation.source, notation.target) == number or (
        value_in(number, notation.source) == value_in(number, notation.target) and number.isdecimal()
    )


def _correct(text: str, answer: Answer, result: FoundItems, notation: Notation) -> None:
    """Put lost numbers in the places of as many other numbers, if all numbers then have the order of the source."""
    lost = [item for item in result.lost if item.means in _READ_AS_NUMBERS and item.span.kind in _CORRECTABLE]
    free = answer.free_numbers()
    if not lost or len(lost) != len(free):
        return
    corrected = [_corrected(text, item, span, notation) for item, span in zip(lost, free, strict=True)]
    numbers = [each for each in result.found if each.item.span.kind in _CORRECTABLE]
    by_source = sorted([*numbers, *corrected], key=lambda each: each.item.word)
    if any(first.start > second.start for first, second in pairwise(by_source)) or _has_stand_in(text, lost, by_source):
        return
    result.found += corrected
    result.lost = [item for item in result.lost if item not in lost]


def _has_stand_in(text: str, lost: Sequence[InputItem], found: Sequence[FoundItem]) -> bool:
    """Return whether an answer has a stand-in that no item replaces: the model wrote it twice."""
    rest, position = "", 0
    for each in found:
        rest, position = rest + text[position : each.start] + " ", each.end
    rest += text[position:]
    return any(item.means is Means.STAND_IN and substitute_number(item.shown) in rest for item in lost)


def _corrected(text: str, item: InputItem, span: Range, notation: Notation) -> FoundItem:
    """Put the number alone where the answer has its unit already, else the whole item."""
    kind = item.span.kind
    if kind in NUMERIC:
        number = notation.of_number(item.text)
        candidate = text[: span[0]] + number + text[span[1] :]
        [found] = Answer(candidate, notation.source, notation.target).find([(kind, item.text)])
        if found is not None and found[0] == span[0]:
            return _with_suffix(FoundItem(item, *span, number, Means.CORRECTED), text, notation)
        # Another sign beside the number belongs to what the model made of the item.
        beside = _SIGNS_BESIDE.search(text, max(span[0] - 2, 0), span[1] + 2)
        if beside is not None and beside.start() <= span[0] and beside.end() >= span[1]:
            span = beside.span()
    output = notation.of(kind, item.text)
    if kind is ItemKind.TIME and output[-1:].lower() != "m" and (behind := _BEHIND_TIME.match(text, span[1])):
        # A meridiem was that of the other time; "Uhr" stands before a zone.
        time, space, zone = output.partition(" ")
        output = f"{time}{behind['hour'] or ''}{space}{zone}"
        span = span[0], behind.end()
    return FoundItem(item, *span, output, Means.CORRECTED)


def _with_suffix(found: FoundItem, text: str, notation: Notation) -> FoundItem:
    """Return a found number with the suffix of an English ordinal that it needs, if it has one: `21st`, not `21th`."""
    suffix = _ENGLISH_ORDINAL.match(text, found.end)
    number = found.output or ""
    if suffix is None or not number.isdecimal() or not notation.target.startswith("en"):
        return found
    return replace(found, end=suffix.end(), output=number + _ordinal_suffix(int(number)))


def _ordinal_suffix(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
