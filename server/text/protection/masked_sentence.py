"""A sentence as the model reads it, and the restoration of its spans and tags in an answer.

A span is read as it is, or a mask stands for it: a neutral string of the vocabulary, which the model copies. An answer
has each of them exactly once, or it lost some."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

import numpy as np
import regex
from numpy.typing import NDArray

from server.text.protection.tag_placement import Block, fits
from server.text.protection.word_alignment import (
    Links,
    Range,
    by_words,
    cut_again,
    digits_of,
    identity_links,
    links,
    words_of,
)
from server.text.readers.units import OBJECT, ProtectedSpan, Unit
from server.text.spans import UNSPACED, SpanKind

# In front of a brace, a message reads it as the beginning of a quotation: `l'{name}`.
_APOSTROPHE = regex.compile(r"(?<=\w)'\Z")
_LETTERS = r"\p{Latin}\p{Cyrillic}\p{Greek}_"  # those of other scripts may touch a span
_WORD = rf"[{_LETTERS}\d]"
_MIN_WORDS = 2
_MIN_LETTERS = 8  # fewer may be an acronym


def is_shouted(text: str) -> bool:
    """Return whether a text is wholly in capitals, and more than an acronym."""
    if not text.isupper():
        return False
    return sum(map(str.isalpha, text)) >= _MIN_LETTERS and len(text.split()) >= _MIN_WORDS


def small(text: str, *, is_first: bool) -> str:
    """Return a text in small letters, in the same length; with a capital if it is the first of a sentence."""
    written = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    first = next((index for index, letter in enumerate(text) if letter.isalpha()), None) if is_first else None
    return written if first is None else written[:first] + text[first] + written[first + 1 :]


def capitals(text: str) -> str:
    """Return a text in capitals."""
    return text.upper()


class Strategy(StrEnum):
    """How a span got through the model."""

    AS_IS = "as_is"  # the model read it and wrote it
    MASK = "mask"  # the model read a mask
    PLACED = "placed"  # left out of the model input, and placed next to its words
    APART = "apart"  # the sentence was translated around it


@dataclass(frozen=True, slots=True)
class KeptSpan:
    """A span of a source text, and the means that kept it."""

    text: str
    kind: SpanKind
    means: Strategy


@dataclass(slots=True)
class TokenAttention:
    """The attention between a model's answer and its input, [target tokens, source tokens], and the tokens' spans."""

    weights: NDArray[np.float32]
    source_spans: Sequence[Range]
    target_spans: Sequence[Range]


@dataclass(slots=True)
class Restored:
    """A translated part of a unit: `text` with `OBJECT` for each of the `outputs`, in its order.

    The target words of the `block` count from the part's own beginning. A unit without tags has no block.
    """

    text: str
    outputs: Sequence[str] = ()
    block: Block | None = None
    kept: Sequence[KeptSpan] = ()

    def with_outputs(self) -> str:
        """Return the text without tags, with its spans."""
        if not self.outputs:
            return self.text
        outputs = iter(self.outputs)
        first, *others = self.text.split(OBJECT)
        return first + "".join(next(outputs, OBJECT) + other for other in others)


# Replacements in an answer, in their order: start, end, text.
Edit = tuple[int, int, str]


@dataclass(slots=True)
class _Shown:
    """A span in the model input: what stands for it, from `start`, and whether blanks were put around it."""

    span: ProtectedSpan
    means: Strategy
    text: str
    start: int
    has_blank_before: bool = False
    has_blank_behind: bool = False


@dataclass
class MaskedSentence:
    """Characters `start` to `end` of a unit as a model reads them.

    With `edits_of` an answer is edited before spans are put back, which are OBJECT in the text that it receives.
    """

    unit: Unit
    start: int
    end: int
    text: str
    is_unspaced: bool = False  # the target language is written without blanks
    is_fragment: bool = False
    shown: Sequence[_Shown] = ()
    is_shouted: bool = False  # in capitals: the model reads small letters
    edits_of: Callable[[str], Sequence[Edit]] | None = None
    _moved: list[tuple[int, int]] = field(
        default_factory=list
    )  # from these places on, unit and input differ by so much
    _words: list[Range] | None = None  # of the unit, once tags need them

    @property
    def is_plain(self) -> bool:
        """Whether the answer of the model is the translation, without any change."""
        return not (self.shown or self.unit.tags or self.is_fragment or self.is_shouted or self.edits_of)

    @property
    def needs_attention(self) -> bool:
        """Whether tags or symbols are placed inside the answer."""
        if self.unit.tags and any(self.start < cut < self.end for cut in self.unit.cuts(self.start, self.end)):
            return True
        return any(each.means is Strategy.PLACED and self._edge(each) is None for each in self.shown)

    def restore(self, answer: str, attention: TokenAttention | None) -> Restored | tuple[int, ...]:
        """Return an answer with all spans and the words that tags need, or the indices of the spans that it lost."""
        if self.is_plain and not self.unit.protected:
            return Restored(answer)
        text = answer.replace(OBJECT, "")
        if self.is_fragment:
            text = _without_end(text, self.unit.text[self.start : self.end])
        found = self._find(text)
        if isinstance(found, tuple):
            return found
        edits = self._edits(text, found)
        placed = self._place(text, attention)
        parts = sorted([*found, *placed], key=lambda part: part[:2])
        if self.unit.tags:
            spans = [(each.span.start, each.span.end) for _, _, each in parts]
            if not fits(self.unit.tags_of(self.start, self.end), (self.start, self.end), spans):
                return tuple(range(len(self.shown)))
        writer = _Writer(text, self._cut_words() if self.unit.tags else None, capitals if self.is_shouted else str)
        pieces: list[tuple[int, int, _Shown | str]] = [*parts, *edits]
        for start, end, part in sorted(pieces, key=lambda piece: piece[:2]):
            if isinstance(part, str):
                writer.replace(start, end, part)
                continue
            first, last = self._without_blanks(text, start, end, part)
            writer.copy(first)
            if part.means is Strategy.PLACED:
                self._write_placed(writer, part, text, start)
            else:
                if part.span.output.startswith("{") and self.unit.text[part.span.start - 1 : part.span.start] != "'":
                    writer.text = _APOSTROPHE.sub("’", writer.text)
                writer.protect(last, part.span, self._word_of(part))
        writer.copy(len(text))
        kept = [KeptSpan(self._written(each.span), each.span.kind, each.means) for each in self.shown]
        return Restored(writer.text, writer.outputs, self._block(attention, text, writer), kept)

    def _written(self, span: ProtectedSpan) -> str:
        text = self.unit.text[span.start : span.end]
        return span.output if OBJECT in text else text

    def _find(self, text: str) -> list[tuple[int, int, _Shown]] | tuple[int, ...]:
        """Return where each span is in an answer; the indices of the lost ones if any is not there exactly once."""
        wanted = [each for each in self.shown if each.means is not Strategy.PLACED]
        if not wanted:
            return []
        numbers = Counter(each.text for each in wanted)
        pattern = "|".join(self._bounded(each, wanted) for each in sorted(numbers, key=len, reverse=True))
        places: dict[str, list[Range]] = {each: [] for each in numbers}
        for match in regex.finditer(pattern, text):
            places[match.group()].append(match.span())
        self._find_unmasked(text, wanted, places)
        lost = {each for each, number in numbers.items() if len(places[each]) != number}
        if lost:
            return tuple(
                index
                for index, each in enumerate(self.shown)
                if each.means is not Strategy.PLACED and each.text in lost
            )
        taken = {each: iter(spans) for each, spans in places.items()}
        return [(*next(taken[each.text]), each) for each in wanted]

    def _bounded(self, text: str, parts: Sequence[_Shown]) -> str:
        """Return the pattern of a span in an answer, which may touch letters there if it does in the source."""
        source, spans = (
            self.unit.text,
            [each.span for each in parts if each.text == text and each.means is Strategy.AS_IS],
        )
        before = "".join(source[span.start - 1 : span.start] for span in spans)
        return bounded(text, before, "".join(source[span.end : span.end + 1] for span in spans))

    def _find_unmasked(self, text: str, wanted: Sequence[_Shown], places: Mapping[str, list[Range]]) -> None:
        """Add to `places` where spans stand themselves in an answer that has none of their masks."""
        missing: dict[str, list[_Shown]] = {}
        for each in wanted:
            if not places[each.text]:
                missing.setdefault(self._written(each.span), []).append(each)
        taken = [place for found in places.values() for place in found]
        for written, parts in missing.items():
            found = [match.span() for match in regex.finditer(bounded(written), text)]
            is_free = all(end <= first or last <= start for start, end in found for first, last in taken)
            if is_free and len(found) == len(parts):
                for part, place in zip(parts, found, strict=True):
                    places[part.text].append(place)

    def _edits(self, text: str, found: Sequence[tuple[int, int, _Shown]]) -> Sequence[Edit]:
        """Return the edits of an answer outside its spans."""
        if self.edits_of is None:
            return ()
        hidden = list(text)
        for start, end, _ in found:
            hidden[start:end] = OBJECT * (end - start)
        return self.edits_of("".join(hidden))

    def _without_blanks(self, text: str, start: int, end: int, part: _Shown) -> Range:
        """Return the range of a mask in an answer, with the blanks that were put around it for the model."""
        before, behind = self.unit.text[: part.span.start][-1:], self.unit.text[part.span.end :][:1]
        if part.has_blank_before and text[start - 1 : start] == " " and self._touches(before):
            start -= 1
        if part.has_blank_behind and text[end : end + 1] == " " and self._touches(behind):
            end += 1
        return start, end

    def _touches(self, neighbour: str) -> bool:
        """Return whether a mask touches its neighbour in the translation if it does in the source."""
        return self.is_unspaced or UNSPACED.match(neighbour) is None

    def _edge(self, part: _Shown) -> int | None:
        """Return 0 or -1 for a placed symbol with no word in front of it or behind it; None inside."""
        if not any(map(str.isalnum, self.text[: part.start])):
            return 0
        return None if any(not each.isspace() for each in self.text[part.start :]) else -1

    def _place(self, text: str, attention: TokenAttention | None) -> list[tuple[int, int, _Shown]]:
        """Return where symbols that the model did not read stand in an answer."""
        placed: list[tuple[int, int, _Shown]] = []
        aligned: tuple[list[Range], list[Range], Links] | None = None
        for each in self.shown:
            if each.means is not Strategy.PLACED:
                continue
            if (edge := self._edge(each)) is not None:
                place = 0 if edge == 0 else len(text)
            else:
                if aligned is None:
                    source, target = words_of(self.text), words_of(text)
                    aligned = source, target, self._links(attention, text, target, source)
                place = _place_of(each, *aligned, len(text))
            placed.append((place, place, each))
        return placed

    def _write_placed(self, writer: "_Writer", part: _Shown, text: str, place: int) -> None:
        before, after = self.unit.text[: part.span.start][-1:], self.unit.text[part.span.end :][:1]
        if before.isspace() and writer.text[-1:] not in ("", " "):
            writer.text += " "
        writer.protect(place, part.span, self._word_of(part))
        behind = text[place : place + 1]
        # A word that no sign touches in the source does not in an answer that lacks the mark between them either.
        is_apart = after.isspace() or not (after.isalnum() or self.is_unspaced)
        if (is_apart and behind.isalnum()) or (after.isspace() and not place and behind.strip()):
            writer.text += " "

    def _word_of(self, part: _Shown) -> int:
        return bisect_left(self._unit_words, (part.span.start,)) if self.unit.tags else 0

    @property
    def _unit_words(self) -> list[Range]:
        if self._words is None:
            self._words = unit_words(self.unit, (self.start, self.end))
        return self._words

    def _input_words(self) -> list[Range]:
        """Return the ranges of the unit's words in the model input; that of a symbol that is left out is empty."""
        spans = {each.span.start: each for each in self.shown}
        found: list[Range] = []
        moves = iter((*self._moved, (self.end + 1, 0)))
        offset, (place, following) = -self.start, next(moves)
        for start, end in self._unit_words:
            while place <= start:
                offset, (place, following) = following, next(moves)
            if (each := spans.get(start)) is not None:
                found.append((each.start, each.start + len(each.text)))
            else:
                found.append((start + offset, end + offset))
        return found

    def _links(
        self,
        attention: TokenAttention | None,
        text: str,
        target: Sequence[Range],
        source: Sequence[Range],
        anchors: Sequence[Range] = (),
    ) -> Links:
        """Return how likely words of an answer are aligned with words of the model input."""
        weights = None
        if attention is not None and target and source:
            weights = by_words(attention.weights, attention.target_spans, target, attention.source_spans, source)
        return links(
            [self.text[start:end] for start, end in source],
            [text[start:end] for start, end in target],
            weights,
            anchors,
        )

    def _block(self, attention: TokenAttention | None, text: str, writer: "_Writer") -> Block | None:
        """Return the words of the restored text, linked to those of the unit, if there are tags to place."""
        if not self.unit.tags:
            return None
        found = self._links(
            attention, text, writer.answer_words, self._input_words(), (*writer.certain, *writer.anchors)
        )
        written = {text[start:end] for start, end in writer.answer_words}
        suffixes = [
            index
            for index, ((before, _), (start, end)) in enumerate(pairwise(self._unit_words), 1)
            if self._unit_words[index - 1][1] == start
            and self.unit.text[before].isdigit()
            and self.unit.text[start].isalpha()
            and self.unit.text[start:end] not in written
        ]
        return Block(self._unit_words, writer.words, found, [index for index, _ in writer.anchors], suffixes)

    def _cut_words(self) -> dict[str, list[list[tuple[int, str]]]]:
        """Return the words that tags cut, with their pieces and the places of these among the words of the unit.

        In an answer they are cut again.
        """
        cuts = [cut - self.start for cut in self.unit.cuts(self.start, self.end)]
        source = self.unit.text[self.start : self.end]
        found: dict[str, list[list[tuple[int, str]]]] = {}
        for start, end in words_of(source) if cuts else ():
            inside = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
            first = bisect_left(self._unit_words, (self.start + start,))
            if not inside or self.unit.is_inside_protected(self.start + start + 1):
                continue
            borders = pairwise(dict.fromkeys((start, *inside, end)))
            pieces = [(first + index, source[slice(*piece)]) for index, piece in enumerate(borders)]
            found.setdefault(digits_of(source[start:end]), []).append(pieces)
        return found


@dataclass(slots=True)
class _Writer:
    """Writes the restored text of an answer from beginning to end.

    `words` are those of `text`, `answer_words` the same words in the answer; `anchors` are pairs of the indices of the
    target word and the source word of a span, `certain` those of the pieces of words that tags cut. They are recorded
    if `cut_words` are given.
    """

    answer: str
    cut_words: dict[str, list[list[tuple[int, str]]]] | None
    cased: Callable[[str], str] = str
    text: str = ""
    words: list[Range] = field(default_factory=list)
    answer_words: list[Range] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    anchors: list[Range] = field(default_factory=list)
    certain: list[Range] = field(default_factory=list)
    _position: int = 0

    def copy(self, end: int) -> None:
        """Write the answer up to here."""
        begin = self._position
        position = begin
        for first, last in self._pieces(self.answer[begin:end]):
            start, stop = begin + first, begin + last
            self.text += self.cased(self.answer[position:start])
            word = self.cased(self.answer[start:stop])
            self._word(start, stop, len(self.text), len(word))
            self.text += word
            position = stop
        self.text += self.cased(self.answer[position:end])
        self._position = end

    def replace(self, start: int, end: int, new: str) -> None:
        """Write other words in place of a part of the answer."""
        self.copy(start)
        for first, last in self._pieces(new):
            self._word(start, end, len(self.text) + first, last - first)
        self.text += new
        self._position = end

    def protect(self, end: int, span: ProtectedSpan, word: int) -> None:
        """Write a span whose word in the source has this index; its counterpart in the answer ends here."""
        if self.cut_words is not None:
            self.anchors.append((len(self.words), word))
            self._word(self._position, end, len(self.text), len(OBJECT))
        self.text += OBJECT
        self.outputs.append(span.output)
        self._position = end

    def _pieces(self, text: str) -> list[Range]:
        """Return the words of a part of an answer; those that tags cut in the source are cut again, and certain."""
        if self.cut_words is None:
            return []
        words = words_of(text)
        if not self.cut_words:
            return words
        found: list[Range] = []
        for start, end in words:
            same = self.cut_words.get(digits_of(text[start:end]))
            if not same:
                found.append((start, end))
                continue
            pieces = same.pop(0)
            for (word, _), piece in zip(
                pieces, cut_again(text, (start, end), [each for _, each in pieces]), strict=True
            ):
                if piece[0] < piece[1]:
                    self.certain.append((len(self.words) + len(found), word))
                    found.append(piece)
        return found

    def _word(self, start: int, end: int, place: int, length: int) -> None:
        self.words.append((place, place + length))
        self.answer_words.append((start, end))


def read_sentence(
    unit: Unit,
    start: int,
    end: int,
    means: Sequence[Strategy] = (),
    masks: Sequence[str] = (),
    *,
    is_unspaced: bool = False,
    is_fragment: bool = False,
    is_shouted: bool = False,
    edits_of: Callable[[str], Sequence[Edit]] | None = None,
) -> MaskedSentence | None:
    """Return a sentence as the model reads it, with these means for its spans; None without enough masks."""
    if not unit.protected or not (spans := unit.protected_in(start, end)):
        text = unit.text[start:end]
        text = small(text, is_first=True) if is_shouted else text
        return MaskedSentence(unit, start, end, text, is_unspaced, is_fragment, (), is_shouted, edits_of)

    def read(first: int, last: int) -> str:
        return small(unit.text[first:last], is_first=first == start) if is_shouted else unit.text[first:last]

    sentence = unit.text[start:end]
    free = (mask for mask in masks if mask not in sentence)
    text, position = "", start
    shown: list[_Shown] = []
    moved: list[tuple[int, int]] = []
    for span, its_means in zip(spans, means, strict=True):
        text += read(position, span.start)
        position = span.end
        if its_means is Strategy.PLACED:
            behind = unit.text[position : min(position + 1, end)]
            if text.endswith(" ") and (not behind or behind.isspace() or unicodedata.category(behind)[0] == "P"):
                text = text[:-1]
            shown.append(_Shown(span, its_means, "", len(text)))
        elif its_means is Strategy.AS_IS:
            shown.append(_Shown(span, its_means, unit.text[span.start : span.end], len(text)))
            text += shown[-1].text
        else:
            mask = next(free, None)
            if mask is None:
                return None
            has_before = needs_blank(text[-1:])
            has_behind = position < end and needs_blank(unit.text[position])
            text += " " * has_before
            shown.append(_Shown(span, its_means, mask, len(text), has_before, has_behind))
            text += mask + " " * has_behind
        moved.append((position, len(text) - position))
    text += read(position, end)
    return MaskedSentence(unit, start, end, text, is_unspaced, is_fragment, shown, is_shouted, edits_of, moved)


def unchanged(unit: Unit, span: Range) -> Restored:
    """Return a span of a unit that needs no decoding."""
    protected = unit.protected_in(*span)
    text, position = "", span[0]
    for each in protected:
        text += unit.text[position : each.start] + OBJECT
        position = each.end
    text += unit.text[position : span[1]]
    kept = [
        KeptSpan(
            each.output if OBJECT in unit.text[each.start : each.end] else unit.text[each.start : each.end],
            each.kind,
            Strategy.APART,
        )
        for each in protected
    ]
    block = None
    if unit.tags:
        words = unit_words(unit, span)
        starts = {each.start for each in protected}
        target: list[Range] = []
        moved, position = span[0], 0
        for start, end in words:
            length = len(OBJECT) if start in starts else end - start
            target.append((start - moved, start - moved + length))
            moved += (end - start) - length
        indices = [index for index, (start, _) in enumerate(words) if start in starts]
        block = Block(words, target, identity_links(len(words)), indices)
    return Restored(text, [each.output for each in protected], block, kept)


def replaced(unit: Unit, span: Range, text: str, attention: TokenAttention | None = None) -> Restored:
    """Return `text` in place of a part of a unit without spans; `attention` is that of a model that has read it."""
    restored = MaskedSentence(unit, *span, unit.text[slice(*span)]).restore(text, attention)
    assert isinstance(restored, Restored), "there are no spans to lose"
    return restored


def unit_words(unit: Unit, span: Range) -> list[Range]:
    """Return the words of a unit in a span; each protected span is one word."""
    found: list[Range] = []
    position = span[0]
    protected = [(each.start, each.end) for each in unit.protected_in(*span)]
    for start, end in (*protected, (span[1], span[1])):
        if start > position:
            between = words_of(unit.text[position:start], [cut - position for cut in unit.cuts(position, start)])
            found += [(position + first, position + last) for first, last in between]
        if end > start:
            found.append((start, end))
        position = end
    return found


def needs_blank(neighbour: str) -> bool:
    """Return whether a tokenizer would read a mask and what touches it as one word."""
    return bool(neighbour) and not neighbour.isspace() and unicodedata.category(neighbour)[0] != "P"


def bounded(text: str, before: str = "", behind: str = "") -> str:
    """Return a pattern of a span that is not part of a longer word.

    It may touch what it touches in its source: letters or digits, if there are some among the characters given.
    """
    border = rf"(?<!{_continuing(before)})" if regex.match(_WORD, text[0]) else ""
    return border + regex.escape(text) + (rf"(?!{_continuing(behind)})" if regex.match(_WORD, text[-1]) else "")


def _continuing(neighbours: str) -> str:
    """Return a pattern of a character that would continue a word, other than those next to it in the source."""
    letters = "" if any(each.isalpha() or each == "_" for each in neighbours) else _LETTERS
    digits = "" if any(map(str.isdecimal, neighbours)) else r"\d"
    return f"[{letters}{digits}]" if letters or digits else "(?!)"


def _place_of(part: _Shown, source: Sequence[Range], target: Sequence[Range], aligned: Links, end: int) -> int:
    """Return the character of an answer at which a symbol stands: next to its word, or the likelier one of two."""
    after = next((index for index, (start, _) in enumerate(source) if start >= part.start), len(source))
    if not target:
        return 0
    if after == len(source):
        return end
    touches_before = after > 0 and source[after - 1][1] == part.start
    likelihoods = aligned.max(axis=0)
    if touches_before and (source[after][0] > part.start or likelihoods[after - 1] > likelihoods[after]):
        return target[int(aligned[:, after - 1].argmax())][1]
    return target[int(aligned[:, after].argmax())][0]


_ENDS = ".!?…。！？｡।۔؟"


def _without_end(answer: str, source: str) -> str:
    """Return an answer without the mark of the end of a sentence that a fragment does not have."""
    return answer if source.rstrip()[-1:] in _ENDS else answer.rstrip(_ENDS + " ") or answer
