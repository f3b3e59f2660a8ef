"""Texts, units and sentences on their way through the pipeline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from bundle.manifest import Repair
from server.interface.request import Completion, Hypothesis, Request, TokenIds, Tokens
from server.text.digits import NumberCheck
from server.text.joining import between
from server.text.protection.masked_sentence import MaskedSentence, Means, Restored
from server.text.readers.units import Document, Unit
from server.text.segmentation.sentences import Segment
from server.translation.types import KeepReason, MemoryMatch


@dataclass(slots=True)
class Job:
    """A part of a sentence that is decoded; `answers` are the hypotheses that lost no span, best first."""

    part: MaskedSentence
    request: Request
    completion: Completion | None = None
    answers: Sequence[tuple[Restored, Hypothesis]] = ()


@dataclass(slots=True)
class Sentence:
    """Characters `start` to `end` of a unit, and the parts that it consists of in its last attempt."""

    text: int  # the index of its text
    unit: Unit
    start: int
    end: int
    indent: int = 0  # characters of white space in front that are streamed with it, not with the sentence before
    continues: bool = False  # divided, because the model takes no longer ones: it goes on in the next sentence
    source: TokenIds | None = None  # its tokens, where segmentation has encoded it
    parts: Sequence[Job | Restored] = ()
    jobs: Sequence[Job] = ()  # the parts that are decoded
    means: Sequence[Means] = ()  # of each of its spans, in the last attempt
    lost: Sequence[int] = ()  # the indices of the spans that the last attempt lost
    kept: KeepReason | None = None  # the reason why its source is its translation
    numbers: NumberCheck | None = None  # those that its translation lacks, or has invented
    repair: Repair | None = None  # what improved its translation
    is_incomplete: bool = False  # its translation lacks something
    memory: MemoryMatch | None = None  # what a translation memory has for it
    prefix: Tokens = ()  # with which its translation begins as a similar one in the memory does

    @property
    def written(self) -> str:
        """Its text in the unit."""
        return self.unit.text[self.start : self.end]

    @property
    def translation(self) -> str:
        """Its translation, without tags."""
        text, is_blank = "", False
        for part in self.parts:
            restored = part if isinstance(part, Restored) else part.answers[0][0]
            if is_blank and text.endswith(" ") and restored.text.startswith(" "):
                text = text[:-1]  # the model wrote nothing for what stood between them
            is_blank = not restored.text
            text += restored.with_outputs()
        return text


@dataclass(slots=True)
class SegmentedText:
    """A text as a document, and the sentences of each of its units by the unit's index in the document."""

    document: Document
    target: str
    sentences_of: dict[int, list[Sentence]] = field(default_factory=dict)
    kept: KeepReason | None = None  # the reason why the whole text stays as it is

    @property
    def sentences(self) -> Iterator[Sentence]:
        """All sentences, in their order."""
        return chain.from_iterable(self.sentences_of.values())

    @property
    def is_streamable(self) -> bool:
        """Return whether its sentences are final one after the other: no tag is placed when all are known."""
        return all(not part.tags for part in self.document if isinstance(part, Unit))

    def streamed(self) -> Iterator[tuple[Segment, Sentence | None]]:
        """Yield the segments of a streamable text with their sentences; a segment without one is final as it is.

        Each sentence has the white space up to the next one's own.
        """
        before, last, last_after = "", None, ""
        for index, part in enumerate(self.document):
            if not isinstance(part, Unit):
                last_after += part
                continue
            position = 0
            for sentence in self.sentences_of.get(index, ()):
                gap = part.text[position : sentence.start]
                if position:
                    gap = between(gap, part.text[:position], self.target)
                gap = last_after + gap
                indent = min(sentence.indent, len(gap))
                before_this, gap = gap[len(gap) - indent :], gap[: len(gap) - indent]
                if last is not None:
                    yield Segment(before, last.written, gap), last
                elif gap:
                    yield Segment(gap, "", ""), None
                before, last, last_after = before_this, sentence, ""
                position = sentence.end
            last_after += part.text[position:]
        if last is not None:
            yield Segment(before, last.written, last_after), last
        else:
            yield Segment(last_after, "", ""), None
