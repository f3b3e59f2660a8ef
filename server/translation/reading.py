"""From texts to documents, units and sentences: the first stages of the pipeline."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise

import regex

from bundle.manifest import Repair, Shapes
from server.interface.interruption import checkpoint
from server.interface.request import Completion, Hypothesis, Request, TokenIds, Tokens
from server.text.digits import NumberCheck
from server.text.joining import between
from server.text.language_detection import TargetDetector
from server.text.protection.masked_sentence import MaskedSentence, Restored, Strategy, TokenAttention
from server.text.readers.html import read_html
from server.text.readers.pieces import to_document
from server.text.readers.plain_text import read_text, read_whole
from server.text.readers.units import OBJECT, Document, Unit
from server.text.readers.xml import read_xml
from server.text.segmentation.sentences import Segment, split, whole
from server.text.spans import Span, find_spans
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.unicode_text import replace_lone_surrogates
from server.text.unknown_characters import UnknownCharacters, readable
from server.translation.execution import Deadline, Runner, runner_for
from server.translation.types import KeepReason, MemoryMatch, TranslationRequest


@dataclass(slots=True)
class Job:
    """A part of a sentence that is decoded; `answers` are the hypotheses that lost no span, best first."""

    part: MaskedSentence
    request: Request
    completion: Completion | None = None
    answers: Sequence[tuple[Restored, Hypothesis]] = ()


# Punctuation in front of the words of a part of a sentence, behind code that divides it, say: no model reads it.
_LEAD = regex.compile(r"[,;:)\]]++\s++(?=\p{L})")


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
    means: Sequence[Strategy] = ()  # of each of its spans, in the last attempt
    lost: Sequence[int] = ()  # the indices of the spans that the last attempt lost
    kept: KeepReason | None = None  # the reason why its source is its translation
    has_numbers: bool = False  # it has digits
    numbers: NumberCheck | None = None  # those that its translation lacks, or has invented
    repair: Repair | None = None  # what improved its translation
    is_incomplete: bool = False  # its translation lacks something
    memory: MemoryMatch | None = None  # what a translation memory has for it
    prefix: Tokens = ()  # with which its translation begins as a similar one in the memory does
    attention: TokenAttention | None = None  # of the translation that the memory has, where tags need it

    @property
    def written(self) -> str:
        """Its text in the unit."""
        return self.unit.text[self.start : self.end]

    @property
    def translation(self) -> str:
        """Its translation, without tags."""
        return "".join([part.with_outputs() for part in self.restored()])

    def restored(self, rank: int = 0) -> list[Restored]:
        """Return the parts of its translation of this rank, or of the last one if there are fewer."""
        parts = [
            part if isinstance(part, Restored) else part.answers[min(rank, len(part.answers) - 1)][0]
            for part in self.parts
        ]
        for first, second in pairwise([index for index, part in enumerate(parts) if part.text]):
            before, behind = parts[first].text, parts[second].text
            if second - first > 1 and before.endswith(" ") and behind.startswith(" "):
                parts[first] = replace(parts[first], text=before[:-1])  # the model wrote nothing for the part between
        return parts

    def hypotheses(self, rank: int = 0) -> list[Hypothesis]:
        """Return the hypotheses of its decoded parts of this rank, or of the last one if there are fewer."""
        return [job.answers[min(rank, len(job.answers) - 1)][1] for job in self.jobs]


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


_MAX_EXTRA_TOKENS = 16  # for characters that a tokenizer replaces by longer ones


@dataclass(slots=True)
class SegmentedTexts:
    """The texts of a request, and how their sentences pass through the pipeline. `deadline` interrupts it."""

    texts: list[SegmentedText]
    sentences: list[Sentence]
    is_text: bool  # not a document with markup
    run: Runner
    deadline: Deadline


class TextReader:
    """Reads texts and divides them into sentences that one model takes."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        shapes: Shapes,
        languages: Sequence[str],
        inline_characters: float,
        lost_signs: Sequence[str] = (),
    ) -> None:
        """Read for a model that translates between these languages, and loses some signs."""
        self._tokenizer = tokenizer
        self._inline_characters = inline_characters
        self._max_tokens = shapes.max_source_tokens
        # A text has at most as many tokens as bytes, and those around it.
        self._max_bytes = shapes.max_source_tokens - tokenizer.count_tokens("") - _MAX_EXTRA_TOKENS
        self._unknown = UnknownCharacters(readable(tokenizer.known_characters, languages), lost_signs)

    def spans(self, text: str) -> list[Span]:
        """Return the machine-readable spans of a text."""
        return find_spans(text, self._unknown)

    async def read(self, request: TranslationRequest, deadline: Deadline, *, keeps_target: bool) -> SegmentedTexts:
        """Return the segmented texts. With `keeps_target`, texts that are in the target language already are kept.

        Raises `InvalidRequest` for XML that is not well-formed, and `DeadlineExceeded`.
        """
        # Four blocks of a document at once would hold the event loop for 8 ms each.
        is_inline = not request.in_background and (request.memory is None or self._inline_characters == math.inf)
        inline_characters = self._inline_characters if is_inline else -1
        is_text = request.format == "text"
        run = runner_for(request.num_characters, is_text, deadline, inline_characters)
        texts = await run(self._read_all, request, keeps_target)
        sentences = [sentence for text in texts for sentence in text.sentences]
        return SegmentedTexts(texts, sentences, is_text, run, deadline)

    def _read_all(self, request: TranslationRequest, keeps_target: bool) -> list[SegmentedText]:
        is_whole = request.options.is_about_whole_texts
        documents = [self._document(replace_lone_surrogates(text), request, is_whole) for text in request.texts]
        texts = [SegmentedText(document, request.target) for document in documents]
        with_units = [
            (text, units) for text in texts if (units := [part for part in text.document if isinstance(part, Unit)])
        ]
        are_in_target = [False] * len(with_units)
        if keeps_target:
            visible = ["\n".join([unit.masked(" ") for unit in units]) for _, units in with_units]
            are_in_target = TargetDetector(request.source, request.target).are_certain(visible)
        for (text, _), is_in_target in zip(with_units, are_in_target, strict=True):
            if is_in_target:
                text.kept = KeepReason.ALREADY_IN_TARGET_LANGUAGE
                text.document = [part.raw if isinstance(part, Unit) else part for part in text.document]
        for index, text in enumerate(texts):
            self._segment(index, text, request, is_whole)
        return texts

    def _segment(self, index: int, text: SegmentedText, request: TranslationRequest, is_whole: bool) -> None:
        has_units = False
        for place, unit in enumerate(text.document):
            if isinstance(unit, Unit):
                checkpoint()
                has_units = True
                sentences = self._sentences(index, unit, request, is_whole)
                text.sentences_of[place] = sentences if request.memory is None else _recalled(sentences, request)
        if not has_units and text.kept is None and any(part.strip() for part in text.document if isinstance(part, str)):
            text.kept = KeepReason.NO_WORDS

    def _document(self, text: str, request: TranslationRequest, is_whole: bool) -> Document:
        if request.format == "html":
            return to_document(read_html(text, request.markup), self._unknown)
        if request.format == "xml":
            return to_document(read_xml(text, request.markup), self._unknown)
        return (read_whole if is_whole else read_text)(text, self._unknown)

    def _sentences(self, index: int, unit: Unit, request: TranslationRequest, is_whole: bool) -> list[Sentence]:
        """Divide a unit, never inside a span. Sentences have their tokens if segmentation had to count them."""
        text = unit.segmentable()
        sources: dict[str, TokenIds] = {}
        fits = partial(self._fits, sources, request)
        has_spans = bool(unit.protected)
        found: list[Sentence] = []
        for segment, start, end in _spans([whole(text)] if is_whole else split(text, request.source, fits)):
            if found and has_spans and unit.is_inside_protected(start):
                found[-1].end = end
            elif start < end:
                if not found and (lead := _LEAD.match(text, start, end)) is not None:
                    start = lead.end()
                source = sources.get(segment.text) if not has_spans and end - start == len(segment.text) else None
                found.append(Sentence(index, unit, start, end, len(segment.before), segment.continues, source))
        return found

    def _fits(self, sources: dict[str, TokenIds], request: TranslationRequest, text: str) -> bool:
        checkpoint()
        if len(text.encode()) <= self._max_bytes or not any(map(str.isalnum, text)):
            return True
        tokens = self._tokenizer.encode(text, request.target, request.source)
        if len(tokens) > self._max_tokens:
            return False
        sources[text] = tokens
        return True


def _recalled(sentences: list[Sentence], request: TranslationRequest) -> list[Sentence]:
    """Return sentences with what the memory has for them; one for all if it has their whole text."""
    assert request.memory is not None
    if request.options.num_hypotheses > 1 or request.options.is_about_whole_texts:
        return sentences
    if len(sentences) > 1 and not any(OBJECT in each.written for each in sentences):
        whole = replace(sentences[0], end=sentences[-1].end, source=None, continues=False)
        whole.memory = request.memory.find(whole.written, request.source, request.target, is_sentence=False)
        if whole.memory is not None:
            return [whole]
    for sentence in sentences:
        checkpoint()
        # What is no text has no place in a stored translation.
        if OBJECT not in sentence.written:
            sentence.memory = request.memory.find(sentence.written, request.source, request.target)
    return sentences


def _spans(segments: Sequence[Segment]) -> Iterator[tuple[Segment, int, int]]:
    """Yield segments with the start and the end of their text."""
    position = 0
    for segment in segments:
        start = position + len(segment.before)
        end = start + len(segment.text)
        position = end + len(segment.after)
        yield segment, start, end
