"""Sentences as a model reads them, and the restoration of what was protected in its answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from server.text.glossary import Glossary, capitalized_like
from server.text.protection.capitals import is_all_caps, lower_cased
from server.text.protection.substitutes import find_substitutes
from server.text.protection.tag_placement import Block, fits
from server.text.protection.word_alignment import Range, by_words, identity_links, links, words_of
from server.text.readers.units import OBJECT, ProtectedSpan, Unit


@dataclass(slots=True)
class TokenAttention:
    """The attention between a model's answer and its input, [target tokens, source tokens], and the tokens' spans."""

    weights: NDArray[np.float32]
    source_spans: Sequence[Range]
    target_spans: Sequence[Range]


@dataclass(slots=True)
class Restored:
    """A translated part of a unit: `text` with `OBJECT` for each of the `outputs`, in its order.

    The target words of the `block` count from the part's own beginning. Plain text has none.
    """

    text: str
    outputs: Sequence[str] = ()
    block: Block | None = None


class Protected(Protocol):
    """A part of a sentence as the model reads it."""

    @property
    def text(self) -> str:
        """The model input."""
        ...

    @property
    def substitutes(self) -> Sequence[str]:
        """The words that stand for protected spans."""
        ...

    @property
    def must_have_substitutes(self) -> bool:
        """Return whether the search may only produce answers with all substitutes."""
        ...

    @property
    def is_continuation(self) -> bool:
        """Return whether another part of the same sentence comes before."""
        ...

    @property
    def description(self) -> str:
        """Its name in an error message."""
        ...

    def restore(self, answer: str, attention: TokenAttention | None) -> Restored | None:
        """Return a model's answer with all that was protected; None if something was lost."""
        ...


@dataclass(slots=True)
class PlainSentence:
    """A sentence without anything to protect."""

    text: str
    glossary: Glossary | None = None
    is_whole_text: bool = False
    substitutes: ClassVar[Sequence[str]] = ()
    must_have_substitutes: ClassVar[bool] = False
    is_continuation: ClassVar[bool] = False

    @property
    def description(self) -> str:
        """Its name in an error message."""
        return "a text taken as one sentence" if self.is_whole_text else "a part of the text that cannot be divided"

    def restore(self, answer: str, attention: TokenAttention | None) -> Restored:
        """Return the answer, with a capital where a glossary term in lower case took the place of one."""
        if self.glossary is not None:
            answer = capitalized_like(self.text, answer, self.glossary.target_terms(self.text))
        return Restored(answer)


@dataclass(frozen=True, slots=True)
class ProtectedSentence:
    """A sentence, or a fragment of one, with substitutes for its protected spans."""

    unit: Unit
    span: Range
    text: str
    unit_words: list[Range]
    input_words: list[Range]  # the same words in `text`
    protected: list[tuple[int, ProtectedSpan]]  # with the index of its word
    substitutes: Sequence[str]
    is_all_caps: bool
    is_fragment: bool = False
    is_continuation: bool = False
    must_have_substitutes: bool = False

    @property
    def description(self) -> str:
        """Its name in an error message."""
        return "a part of the text that cannot be divided"

    def restore(self, answer: str, attention: TokenAttention | None) -> Restored | None:
        """Return the answer with protected spans and capitals; None unless each substitute is there exactly once."""
        text = answer.replace(OBJECT, "")
        if self.is_fragment:  # models end every answer as a sentence
            text = text.rstrip(".!?… ") or text
        found = find_substitutes(text, self.substitutes)
        if found is None:
            return None
        pairs = sorted(zip(found, self.protected, strict=True), key=lambda item: item[0])
        if not fits(self.unit.tags_of(*self.span), self.span, [(each.start, each.end) for _, (_, each) in pairs]):
            return None
        writer = _Writer(text, str.upper if self.is_all_caps else str, self._cut_words())
        for (start, end), (word, protected) in pairs:
            writer.write_answer(start)
            writer.write_protected(end, protected.output, word)
        writer.write_answer(len(text))
        return Restored(writer.text, writer.outputs, self._block(attention, text, writer))

    def _block(self, attention: TokenAttention | None, text: str, writer: "_Writer") -> Block:
        """Return the words of the restored text, linked to those of the unit."""
        weights = None
        if attention is not None and writer.answer_words and self.input_words:
            weights = by_words(
                attention.weights, attention.target_spans, writer.answer_words, attention.source_spans, self.input_words
            )
        target = [text[start:end] for start, end in writer.answer_words]
        source = [self.text[start:end] for start, end in self.input_words]
        found = links(source, target, weights, writer.anchors)
        return Block(self.unit_words, writer.words, found, [index for index, _ in writer.anchors])

    def _cut_words(self) -> dict[str, list[int]]:
        """Return the words that tags cut, with the lengths of their pieces: in the answer they are cut again."""
        cut: dict[str, list[int]] = {}
        run: list[Range] = []
        for start, end in (*self.input_words, (len(self.text) + 1, 0)):
            if run and run[-1][1] != start:
                if len(run) > 1:
                    cut[self.text[run[0][0] : run[-1][1]]] = [last - first for first, last in run]
                run = []
            if self.text[start:end].isalnum():
                run.append((start, end))
        return cut


@dataclass(slots=True)
class _Writer:
    """Writes the restored text of an answer from beginning to end.

    `words` are those of `text`, `answer_words` the same words in the answer; `anchors` are pairs of the indices of a
    target word and a source word.
    """

    answer: str
    case: Callable[[str], str]
    cut_words: dict[str, list[int]]
    text: str = ""
    words: list[Range] = field(default_factory=list)
    answer_words: list[Range] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    anchors: list[Range] = field(default_factory=list)
    _position: int = 0

    def write_protected(self, end: int, output: str, word: int) -> None:
        """Write `output` for the substitute of a source word, which ends here."""
        self.anchors.append((len(self.words), word))
        self.outputs.append(output)
        self._write(self._position, end, OBJECT)

    def write_answer(self, end: int) -> None:
        """Write the words of the answer up to here."""
        begin = self._position
        for first, last in words_of(self.answer[begin:end]):
            start, stop = begin + first, begin + last
            for length in self.cut_words.get(self.answer[start:stop], [stop - start]):
                self._write(start, start + length, self.case(self.answer[start : start + length]))
                start += length
        self.text += self.answer[self._position : end]
        self._position = end

    def _write(self, start: int, end: int, word: str) -> None:
        self.text += self.answer[self._position : start]
        self.words.append((len(self.text), len(self.text) + len(word)))
        self.answer_words.append((start, end))
        self.text += word
        self._position = end


def protected_sentence(
    unit: Unit,
    span: Range,
    substitutes: Sequence[str],
    language: str,
    *,
    must_have_substitutes: bool = False,
    is_fragment: bool = False,
    is_continuation: bool = False,
) -> ProtectedSentence:
    """Return the model input for a span of a unit; each protected span in it has one of the `substitutes`."""
    start, end = span
    protected = {
        (each.start, each.end): (each, substitute)
        for each, substitute in zip(unit.protected_in(start, end), substitutes, strict=True)
    }
    all_caps = is_all_caps(unit.masked(" ", start, end))
    text, position, is_first = "", start, True
    words = unit_words(unit, span)
    input_words: list[Range] = []
    found: list[tuple[int, ProtectedSpan]] = []
    for number, word in enumerate(words):
        text += unit.text[position : word[0]]
        content = unit.text[word[0] : word[1]]
        if word in protected:
            hidden, content = protected[word]
            found.append((number, hidden))
        elif all_caps:
            content = lower_cased(content, is_first, language)
        is_first = is_first and not content[:1].isalnum()
        input_words.append((len(text), len(text) + len(content)))
        text += content
        position = word[1]
    return ProtectedSentence(
        unit,
        span,
        text + unit.text[position:end],
        words,
        input_words,
        found,
        substitutes,
        all_caps,
        is_fragment,
        is_continuation,
        must_have_substitutes,
    )


def unchanged(unit: Unit, span: Range) -> Restored:
    """Return a span of a unit that needs no decoding."""
    words = unit_words(unit, span)
    protected = {(each.start, each.end): each for each in unit.protected_in(*span)}
    text, position = "", span[0]
    outputs: list[str] = []
    target: list[Range] = []
    for word in words:
        content = unit.text[word[0] : word[1]]
        if word in protected:
            content = OBJECT
            outputs.append(protected[word].output)
        text += unit.text[position : word[0]]
        target.append((len(text), len(text) + len(content)))
        text += content
        position = word[1]
    text += unit.text[position : span[1]]
    indices = [index for index, word in enumerate(words) if word in protected]
    return Restored(text, outputs, Block(words, target, identity_links(len(words)), indices))


def unit_words(unit: Unit, span: Range) -> list[Range]:
    """Return the words of a unit in a span; each protected span is one word."""
    found: list[Range] = []
    position = span[0]
    protected = [(each.start, each.end) for each in unit.protected_in(*span)]
    for start, end in (*protected, (span[1], span[1])):
        between = words_of(unit.text[position:start], [cut - position for cut in unit.cuts(position, start)])
        found += [(position + first, position + last) for first, last in between]
        if end > start:
            found.append((start, end))
        position = end
    return found
