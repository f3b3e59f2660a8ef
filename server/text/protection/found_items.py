"""Items and substitutes found in a model's answer, and what replaces them there."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import regex

from server.text.items.clock_times import is_unusual_time
from server.text.items.compounds import CURRENCY_SIGN, scientific_pattern
from server.text.items.kinds import NUMERIC, PLACED, VALUES, ItemKind
from server.text.items.notation import localized_number
from server.text.items.numbers import separators, value_in
from server.text.items.patterns import NUMBERS
from server.text.items.quotation_marks import DOUBLE_MARKS, opens, quotation_mark
from server.text.items.spoken_times import spoken_minutes
from server.text.items.survival import Answer
from server.text.items.words import currency_pattern, has_number_word
from server.text.items.written_dates import is_unusual_date, is_written
from server.text.protection.found_item import FoundItem, Notation
from server.text.protection.item_edges import (
    with_currency_name,
    with_edges,
    with_ordinal,
    with_rest,
    with_spaces,
    with_unit,
    without_clock,
)
from server.text.protection.means import Means
from server.text.protection.model_input import InputItem, original_mark
from server.text.protection.substitutes import find_substitute, substitute_number
from server.text.protection.word_alignment import Range

_READ_AS_NUMBERS = (Means.AS_IS, Means.STAND_IN)
# Currencies, and what models write for those that they have seldom seen.
_SIGNS = r"[$€£¥%°|\ufffd]"
_SIGNS_BESIDE = regex.compile(rf"(?:{_SIGNS} ?)?\d[\d.,'’–\u00a0\u202f -]*(?<=\d)(?: ?{_SIGNS}(?!\w))?")
_RETRIED = 60  # characters of a sentence that is decoded again for one currency; longer ones have one attempt
_CORRECTABLE = (VALUES - {ItemKind.NUMERAL}) | {ItemKind.CODE, ItemKind.VERSION}


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
        # Another mark in its place may be a closing one, of the same form as an opening one of the source.
        is_copied = span is not None and text[slice(*span)] == item.shown
        if span is not None and is_copied and item.kind in PLACED and not item.shown.isalnum():
            if item.shown not in places:
                places[item.shown] = _places(sentence, item.shown), _places(text, item.shown)
            span = _of_same_rank(*places[item.shown], item, span)
        if span is None or (item.means is Means.STAND_IN and not _is_unique(text, item, span)):
            result.lost.append(item)
        elif item.means is Means.STAND_IN:
            found = FoundItem(item, *span, _instead_of_stand_in(item, notation), item.means)
            if not _is_in_dollars(item):
                result.found.append(without_clock(found, text, notation))
            elif (named := with_currency_name(found, text, notation)) is not None:
                result.found.append(named)
            else:
                result.lost.append(item)
        else:
            output = _instead_of_copy(item, text, sentence, span, notation)
            result.found.append(with_edges(FoundItem(item, *span, output, item.means), text, sentence, notation))
    if corrects and result.lost:
        _correct(text, sentence, answer, result, notation)
    elif not result.lost:
        result.has_invented = _has_invented(answer, sentence, items)
    return result


def _has_invented(answer: Answer, sentence: str, items: Sequence[InputItem]) -> bool:
    """Return whether an answer has a number of which the model input has neither digits nor a word."""
    return (
        any(item.kind in VALUES for item in items)
        and not has_number_word(sentence, answer.source_language)
        and bool(answer.free_numbers())
    )


def with_equal_marks(
    found: Sequence[FoundItem], placed: Sequence[InputItem], text: str, sentence: str, notation: Notation
) -> list[FoundItem]:
    """Return found items with quotation marks of one kind: models write some of them straight and others curly.

    If any is straight in the answer, or placed, marks that the source has straight are straight; others are those of
    the target language.
    """
    if '"' not in text and all(sign.text != '"' for sign in placed):
        return list(found)
    equal: list[FoundItem] = []
    for each in found:
        mark = original_mark(each.item)
        if mark == '"':
            each = replace(each, output='"')
        elif mark in DOUBLE_MARKS:
            output = quotation_mark(mark, opens(sentence, each.item.start), notation.source, notation.target)
            each = replace(each, output=output)
        equal.append(each)
    return equal


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
    written = text[slice(*span)]
    number = substitute_number(item.shown) if item.kind in NUMERIC else written
    return text.count(written) == 1 and (written == number or number not in text)


def _instead_of_stand_in(item: InputItem, notation: Notation) -> str | None:
    """Return the number of an item whose unit is in the answer; None for all of the item."""
    is_whole = item.span.kind not in NUMERIC or scientific_pattern(item.text) is not None
    return None if is_whole else notation.of_number(item.text)


def _instead_of_copy(item: InputItem, text: str, sentence: str, span: Range, notation: Notation) -> str:
    """Return what the model wrote, in the notation of the target language if it copied that of the source."""
    written = text[slice(*span)]
    kind = item.kind
    if kind in (ItemKind.VERSION, ItemKind.PLACEHOLDER) or (kind is ItemKind.IDENTIFIER and not item.text.isascii()):
        return item.text
    if written.startswith("..") and len(written) != len("..."):
        return item.text  # an ellipsis and the full stop of a sentence, or a part of it
    if notation.localizes and written == item.text and written in DOUBLE_MARKS:
        return notation.of_mark(written, sentence, item.start)
    if not notation.localizes or kind not in VALUES:
        return written
    if kind in NUMERIC and NUMBERS.fullmatch(written) is not None:
        match = NUMBERS.search(item.text)
        is_copied = match is not None and written == match.group() and not _reads_alike(written, notation)
        has_zero = written[0] == "0" != item.text[0] and written.isdecimal() and len(written) > 1  # 07 for 7
        if is_copied or has_zero or _is_foreign(written, notation):
            return notation.of_number(item.text)
        return written
    is_unusual = (kind is ItemKind.TIME and is_unusual_time(written, notation.target)) or (
        kind is ItemKind.DATE and is_written(written) and is_unusual_date(written, notation.target)
    )
    return notation.of(kind, item.text) if written == item.text or is_unusual else written


def _is_foreign(number: str, notation: Notation) -> bool:
    """Return whether a number has separators that the target language does not write."""
    return any(each not in separators(notation.target) for each in number[1:] if not each.isdecimal())


def _reads_alike(number: str, notation: Notation) -> bool:
    return localized_number(number, notation.source, notation.target) == number or (
        value_in(number, notation.source) == value_in(number, notation.target) and number.isdecimal()
    )


def _correct(text: str, sentence: str, answer: Answer, result: FoundItems, notation: Notation) -> None:
    """Put lost numbers in the places of as many other numbers, if all numbers then have the order of the source."""
    lost = [item for item in result.lost if item.means in _READ_AS_NUMBERS and item.span.kind in _CORRECTABLE]
    if any(map(_is_in_dollars, lost)):
        return  # what the answer has instead of the name would stay
    if len(sentence) <= _RETRIED and any(_lacks_currency(text, item, answer) for item in lost):
        # By its name, the model knows it. The other numbers can be corrected then.
        others = [item for item in lost if not _lacks_currency(text, item, answer)]
        result.lost = [item for item in result.lost if item not in others]
        return
    free = answer.free_numbers()
    if not lost or len(lost) != len(free):
        return
    pairs = list(zip(lost, free, strict=True))
    if any(spoken_minutes(item.text) is not None and ":" not in text[slice(*span)] for item, span in pairs):
        return  # "fourteen to 7" for "Viertel nach 7"
    corrected = [_corrected(text, sentence, item, span, notation) for item, span in pairs]
    numbers = [each for each in result.found if each.item.span.kind in _CORRECTABLE]
    by_source = sorted([*numbers, *corrected], key=lambda each: each.item.word)
    if any(first.start > second.start for first, second in pairwise(by_source)) or _has_stand_in(text, lost, by_source):
        return
    result.found += corrected
    result.lost = [item for item in result.lost if item not in lost]


def _is_in_dollars(item: InputItem) -> bool:
    """Return whether the model read an amount of dollars in the place of one with the sign of a currency."""
    return item.means is Means.STAND_IN and item.kind is ItemKind.MONEY and CURRENCY_SIGN.search(item.text) is not None


def _lacks_currency(text: str, item: InputItem, answer: Answer) -> bool:
    """Return whether an answer lacks the currency of an item that the model read with its sign."""
    sign = CURRENCY_SIGN.search(item.text) if item.kind is ItemKind.MONEY and item.means is Means.AS_IS else None
    return sign is not None and currency_pattern(sign.group(), answer.target_language).search(text) is None


def _has_stand_in(text: str, lost: Sequence[InputItem], found: Sequence[FoundItem]) -> bool:
    """Return whether an answer has a stand-in that no item replaces: the model wrote it twice."""
    rest, position = "", 0
    for each in found:
        rest, position = rest + text[position : each.start] + " ", each.end
    rest += text[position:]
    return any(item.means is Means.STAND_IN and substitute_number(item.shown) in rest for item in lost)


def _corrected(text: str, sentence: str, item: InputItem, span: Range, notation: Notation) -> FoundItem:
    """Put the number alone where the answer has its unit already, else the whole item."""
    kind = item.span.kind
    if kind in NUMERIC:
        number = notation.of_number(item.text)
        candidate = text[: span[0]] + number + text[span[1] :]
        [found] = Answer(candidate, notation.source, notation.target).find([(kind, item.text)])
        if found is not None and found[0] == span[0]:
            corrected = FoundItem(item, *span, number, Means.CORRECTED)
            if kind is ItemKind.QUANTITY:
                return with_unit(corrected, text, sentence)
            return with_ordinal(corrected, text, notation)
    if kind in NUMERIC or CURRENCY_SIGN.search(item.text):
        # Another sign beside the number belongs to what the model made of the item.
        beside = _SIGNS_BESIDE.search(text, max(span[0] - 2, 0), span[1] + 2)
        if beside is not None and beside.start() <= span[0] and beside.end() >= span[1]:
            span = beside.span()
    corrected = FoundItem(item, *span, notation.of(kind, item.text), Means.CORRECTED)
    return with_spaces(with_rest(corrected, text, sentence, notation), text, sentence)
