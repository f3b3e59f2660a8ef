"""What a model is told of a sentence, and what is made of its answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from server.text.protection.capitals import is_shouted, spoken
from server.text.protection.substitutes import places
from server.text.protection.tag_placement import Block, fits
from server.text.protection.word_alignment import Range, by_words, links, words_of
from server.text.readers.units import OBJECT, Copied, Unit


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a unit, translated: `text` with `OBJECT` for each of the `outputs`, in its order."""

    text: str
    outputs: list[str]
    block: Block  # its target words count from the part's own beginning


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model has said to a draft. `attention` [target tokens, source tokens], if it was asked for."""

    text: str
    source_spans: Sequence[Range]
    target_spans: Sequence[Range]
    attention: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class ProtectedSentence:
    """A sentence as a model is told it: `text`. `names` stand for what is copied; None: they are in other parts."""

    unit: Unit
    range_: Range
    text: str
    words: list[Range]  # of the unit
    told: list[Range]  # the same words in `text`
    copied: list[tuple[int, Copied]]  # with the place of its word
    names: Sequence[str]
    is_shouted: bool
    is_fragment: bool  # of a sentence

    def part(self, answer: Answer) -> Part | None:
        """What the answer comes to; None where something that must be there is not, or more than once."""
        text = answer.text.replace(OBJECT, "")
        if self.is_fragment:  # models end what they say as a sentence
            text = text.rstrip(".!?… ") or text
        found = places(text, self.names)
        if found is None:
            return None
        pairs = sorted(zip(found, self.copied, strict=True), key=lambda item: item[0])
        if not fits(
            self.unit.tags_of(*self.range_), self.range_, [(copied.start, copied.end) for _, (_, copied) in pairs]
        ):
            return None
        writing = _Writing(text, str.upper if self.is_shouted else str, self._cut_words())
        for (start, end), (word, copied) in pairs:
            writing.tell(start)
            writing.copy(end, copied.output, word)
        writing.tell(len(text))
        attention = None
        said = writing.said
        if answer.attention is not None and said and self.told:
            attention = by_words(answer.attention, answer.target_spans, said, answer.source_spans, self.told)
        target = [text[start:end] for start, end in said]
        source = [self.text[start:end] for start, end in self.told]
        found_links = links(source, target, attention, writing.anchors)
        return Part(
            writing.text,
            writing.outputs,
            Block(self.words, writing.words, found_links, [at for at, _ in writing.anchors]),
        )

    def _cut_words(self) -> dict[str, list[int]]:
        """Words that tags cut in pieces, and how long the pieces are: unchanged, they are cut again."""
        cut: dict[str, list[int]] = {}
        run: list[Range] = []
        for start, end in (*self.told, (len(self.text) + 1, 0)):
            if run and run[-1][1] != start:
                if len(run) > 1:
                    cut[self.text[run[0][0] : run[-1][1]]] = [last - first for first, last in run]
                run = []
            if self.text[start:end].isalnum():
                run.append((start, end))
        return cut


@dataclass(slots=True)
class _Writing:
    """What is written for an answer, from its beginning to its end.

    `words` are those of `text`, `said` the same ones in the answer; `anchors` pairs of a word and a source word.
    """

    answer: str
    case: Callable[[str], str]
    cut_words: dict[str, list[int]]
    text: str = ""
    words: list[Range] = field(default_factory=list)
    said: list[Range] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    anchors: list[Range] = field(default_factory=list)
    _place: int = 0

    def copy(self, end: int, output: str, word: int) -> None:
        """Write `output` for the stand-in of a source word, which ends here."""
        self.anchors.append((len(self.words), word))
        self.outputs.append(output)
        self._write(self._place, end, OBJECT)

    def tell(self, end: int) -> None:
        """Write what was said up to here."""
        begin = self._place
        for first, last in words_of(self.answer[begin:end]):
            start, stop = begin + first, begin + last
            for length in self.cut_words.get(self.answer[start:stop], [stop - start]):
                self._write(start, start + length, self.case(self.answer[start : start + length]))
                start += length
        self.text += self.answer[self._place : end]
        self._place = end

    def _write(self, start: int, end: int, word: str) -> None:
        self.text += self.answer[self._place : start]
        self.words.append((len(self.text), len(self.text) + len(word)))
        self.said.append((start, end))
        self.text += word
        self._place = end


def draft(
    unit: Unit, range_: Range, names: Sequence[str], language: str, *, is_fragment: bool = False
) -> ProtectedSentence:
    """What is told of a part of a unit; `names` are for what is copied in it."""
    start, end = range_
    copied = unit.copied_of(start, end)
    name_of = dict(zip(copied, names, strict=True))
    shouting = is_shouted(unit.masked(" ", start, end))
    text, place, is_first = "", start, True
    told: list[Range] = []
    words = _words(unit, range_)
    at = {(each.start, each.end): each for each in copied}
    places_of: list[tuple[int, Copied]] = []
    for number, word in enumerate(words):
        text += unit.text[place : word[0]]
        content = unit.text[word[0] : word[1]]
        if word in at:
            places_of.append((number, at[word]))
            content = name_of[at[word]]
        elif shouting:
            content = spoken(content, is_first, language)
        is_first = is_first and not content[:1].isalnum()
        told.append((len(text), len(text) + len(content)))
        text += content
        place = word[1]
    return ProtectedSentence(
        unit, range_, text + unit.text[place:end], words, told, places_of, names, shouting, is_fragment
    )


def unchanged(unit: Unit, range_: Range) -> Part:
    """A part of a unit that comes out as it is."""
    words = _words(unit, range_)
    copied = {(each.start, each.end): each for each in unit.copied_of(*range_)}
    text, place = "", range_[0]
    outputs, target = [], []
    places_of = [place for place, word in enumerate(words) if word in copied]
    for word in words:
        content = unit.text[word[0] : word[1]]
        if word in copied:
            content = OBJECT
            outputs.append(copied[word].output)
        text += unit.text[place : word[0]]
        target.append((len(text), len(text) + len(content)))
        text += content
        place = word[1]
    text += unit.text[place : range_[1]]
    return Part(text, outputs, Block(words, target, np.eye(len(words), dtype=np.float32), places_of))


def _words(unit: Unit, range_: Range) -> list[Range]:
    """Words of the unit in a range; what is copied is one word."""
    found: list[Range] = []
    place = range_[0]
    inside = unit.copied_of(*range_)
    for start, end in (*((each.start, each.end) for each in inside), (range_[1], range_[1])):
        between = words_of(unit.text[place:start], [cut - place for cut in unit.cuts(place, start)])
        found += [(place + first, place + last) for first, last in between]
        if end > start:
            found.append((start, end))
        place = end
    return found
