"""Texts, units and sentences on their way through the pipeline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from server.interface.request import Completion, Hypothesis, Request, TokenIds
from server.text.protection.protected_sentence import Protected, Restored
from server.text.readers.units import Document, Unit
from server.text.segmentation.sentences import Segment


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


@dataclass(slots=True)
class SegmentedText:
    """A text as a document, and the sentences of each of its units by the unit's index in the document."""

    document: Document
    sentences_of: dict[int, list[Sentence]] = field(default_factory=dict)

    @property
    def sentences(self) -> Iterator[Sentence]:
        """All sentences, in their order."""
        return chain.from_iterable(self.sentences_of.values())

    def streamed(self) -> Iterator[tuple[Segment, Request | None]]:
        """Yield the segments of a plain text with their requests; a segment without one needs no decoding."""
        [unit] = self.document
        assert isinstance(unit, Unit)
        sentences = list(self.sentences)
        # Each sentence has the white space up to the next one's own; what is left in front is a segment of its own.
        starts = [*(each.start - each.indent for each in sentences), len(unit.text)]
        if starts[0] > 0 or not sentences:
            yield Segment(unit.text[: starts[0]], "", ""), None
        for sentence, start, stop in zip(sentences, starts[:-1], starts[1:], strict=True):
            segment = Segment(
                unit.text[start : sentence.start],
                unit.text[sentence.start : sentence.end],
                unit.text[sentence.end : stop],
            )
            [part] = sentence.parts
            yield segment, part.request if isinstance(part, Job) else None
