"""Texts, units and sentences on their way through the pipeline."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from server.interface.request import Completion, Hypothesis, Request, TokenIds
from server.text.items.kinds import ItemKind
from server.text.protection.means import Means, NegationMeans
from server.text.protection.protected import Protected, Restored
from server.text.readers.units import Document, Unit
from server.text.segmentation.sentences import Segment
from server.text.source_check import KeepReason


@dataclass(slots=True)
class Job:
    """A part of a sentence that is decoded; `answers` are the hypotheses that lost nothing, best first."""

    protected: Protected
    request: Request
    completion: Completion | None = None
    answers: Sequence[tuple[Restored, Hypothesis]] = ()


@dataclass(slots=True)
class Sentence:
    """Characters `start` to `end` of a unit, and the parts that it consists of in its last round."""

    text: int  # the index of its text
    unit: Unit
    start: int
    end: int
    indent: int = 0  # characters of white space in front that are streamed with it, not with the sentence before
    continues: bool = False  # divided, because the model takes no longer ones: it goes on in the next sentence
    source: TokenIds | None = None  # its tokens, where segmentation has encoded it
    parts: Sequence[Job | Restored] = ()
    jobs: Sequence[Job] = ()  # the parts that are decoded
    never_copied: Collection[ItemKind] = ()  # by the model
    means: list[Means] = field(default_factory=list)  # of each of its items, in the last round
    lost: Sequence[int] = ()  # the indices of the items that the last round lost
    kept: KeepReason | None = None  # the reason why its source is its translation
    negation_means: NegationMeans = NegationMeans.HYPOTHESES  # in the next round

    @property
    def written(self) -> str:
        """Its text in the unit."""
        return self.unit.text[self.start : self.end]


@dataclass(slots=True)
class SegmentedText:
    """A text as a document, and the sentences of each of its units by the unit's index in the document."""

    document: Document
    sentences_of: dict[int, list[Sentence]] = field(default_factory=dict)

    @property
    def has_items(self) -> bool:
        """Return whether anything in it must survive."""
        return any(isinstance(part, Unit) and part.protected for part in self.document)

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
                between = last_after + part.text[position : sentence.start]
                indent = min(sentence.indent, len(between))
                before_this, between = between[len(between) - indent :], between[: len(between) - indent]
                if last is not None:
                    yield Segment(before, last.unit.text[last.start : last.end], between), last
                elif between:
                    yield Segment(between, "", ""), None
                before, last, last_after = before_this, sentence, ""
                position = sentence.end
            last_after += part.text[position:]
        if last is not None:
            yield Segment(before, last.unit.text[last.start : last.end], last_after), last
        else:
            yield Segment(last_after, "", ""), None
