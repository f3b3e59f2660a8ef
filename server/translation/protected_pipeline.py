"""Texts with mark-up, placeholders and markers, taken apart and put together around plain sentences."""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ParamSpec, TypeVar

from server.interface.engine_client import EngineClient
from server.interface.errors import InvalidRequest
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.text.protection.capitals import is_shouted
from server.text.protection.protected_sentence import Part
from server.text.protection.tag_placement import Block, render
from server.text.readers.html import read_html
from server.text.readers.pieces import to_document
from server.text.readers.plain_text import may_be_special, read_text, read_whole
from server.text.readers.units import Document, Unit
from server.text.readers.unknown_characters import UnknownCharacters
from server.text.readers.xml import read_xml
from server.text.segmentation.sentences import split, whole
from server.text.tokenizers.marian import Tokenizer
from server.text.unicode_text import replace_lone_surrogates
from server.translation.limits import TranslationLimits
from server.translation.protection_strategies import NUM_ATTEMPTS, Attempts, Sentence
from server.translation.sentence_params import ParamsResolver
from server.translation.submission import dispatch, num_tokens, phases, sentence_tokens, time_is_up
from server.translation.token_details import sentence_details
from server.translation.types import Alternative, Phases, Translation, TranslationRequest, TranslationResult

P = ParamSpec("P")
T = TypeVar("T")

# Stands for every character of what is copied where sentences are told apart; a run of them costs a few tokens.
_MASK = "X"
_NAME = "Tom"

# Requests of more characters than this are looked at, taken apart and put together on a worker thread, see
# server.translator.
_INLINE_CHARACTERS = 2000
# Threads of their own: however many long texts come, those that everything else waits for stay free.
_WORKERS = ThreadPoolExecutor(2, "lossless")


@dataclass(slots=True)
class SegmentedText:
    """A text taken apart; the sentences of each unit by the unit's place in the document."""

    document: Document
    sentences: dict[int, list[Sentence]] = field(default_factory=dict)

    @property
    def is_special(self) -> bool:
        """Whether there is anything but sentences, white space, and lines without words."""
        for place, part in enumerate(self.document):
            if isinstance(part, Unit):
                if not part.is_plain or part.text != part.raw:
                    return True
            elif part.strip():
                around = self.document[max(place - 1, 0) : place + 2]
                if any(map(str.isalnum, part)) or any(isinstance(each, Unit) for each in around):
                    return True
        return any(is_shouted(sentence.unit.text[sentence.start : sentence.end]) for sentence in self.all_sentences)

    @property
    def all_sentences(self) -> list[Sentence]:
        """In their order."""
        return [sentence for sentences in self.sentences.values() for sentence in sentences]


class ProtectedPipeline:
    """Translates what has more than words. `translate` may run many times at once on one event loop."""

    def __init__(
        self, generator: EngineClient, limits: TranslationLimits, tokenizer: Tokenizer, clock: Callable[[], float]
    ) -> None:
        self._generator = generator
        self._limits = limits
        self._tokenizer = tokenizer
        self._clock = clock
        self._shapes = generator.bundle.config.shapes
        self._symbols = UnknownCharacters(tokenizer.known_characters)

    async def take_apart(self, request: TranslationRequest, arrived: float) -> list[SegmentedText] | None:
        """The texts taken apart; None if there is nothing in them that a plain translation would lose.

        Raises `InvalidRequest` for XML that is not well-formed, and `DeadlineExceeded`.
        """
        deadline = self._limits.deadline(request, arrived)
        if request.num_characters <= _INLINE_CHARACTERS:
            return self._take_all_apart(request, None) if self._may_be_special(request) else None
        # The look is short: a text with nothing but words does not wait for those that are taken apart.
        if not await asyncio.to_thread(self._may_be_special, request):
            return None
        work = asyncio.get_running_loop().run_in_executor(_WORKERS, self._take_all_apart, request, deadline)
        try:
            async with asyncio.timeout(None if deadline is None else deadline - self._clock()):
                return await work
        except TimeoutError:
            raise time_is_up(math.inf if deadline is None else deadline - arrived) from None

    async def translate(
        self, request: TranslationRequest, texts: Sequence[SegmentedText], arrived: float
    ) -> TranslationResult:
        """These texts translated, in their order. Raises what `Translator.translate` does."""
        params = self._limits.sentence_params(request, self._shapes)
        deadline = self._limits.deadline(request, arrived)
        if request.format != "text" and request.options.is_about_whole_texts:
            raise InvalidRequest(
                "`target_prefix`, `required_phrases` and `return_alternatives` are about whole texts; they cannot be "
                f"combined with format {request.format}"
            )
        resolver = ParamsResolver(params, request.options, self._tokenizer, self._shapes)
        attempts = Attempts(request, resolver, self._tokenizer, self._shapes, self._limits.max_beam_size, deadline)
        pending = [sentence for text in texts for sentence in text.all_sentences]
        allowed_seconds = math.inf if deadline is None else deadline - arrived
        spent = Phases()
        for attempt in range(NUM_ATTEMPTS):
            begun = self._clock() if attempt else arrived
            sentences = self._in_time(pending, deadline, allowed_seconds)
            requests = await _worked(request, _begin, attempts, sentences, attempt)
            asked = self._clock()
            completions = await dispatch(
                self._generator, requests, asked, allowed_seconds, continues=bool(attempt) or request.continues
            )
            spent = _sum(spent, phases(asked - begun, completions))
            sentences = self._in_time(pending, deadline, allowed_seconds)
            pending = await _worked(request, _unsettled, attempts, sentences, completions)
            if not pending:
                break
        translations = await _worked(request, self._put_all_together, texts, request)
        decoded = [done for text in texts for done in _completions(text)]
        return TranslationResult(
            translations,
            spent,
            sentence_tokens(decoded),
            sum(sentence.continues for text in texts for sentence in text.all_sentences),
            params.sampling.seed if params.sampling else None,
        )

    def _in_time(self, sentences: Sequence[Sentence], deadline: float | None, allowed: float) -> Iterator[Sentence]:
        """One by one, so that no thread is kept by what nobody waits for; raises `DeadlineExceeded`."""
        for sentence in sentences:
            if deadline is not None and self._clock() > deadline:
                raise time_is_up(allowed)
            yield sentence

    def _may_be_special(self, request: TranslationRequest) -> bool:
        return request.format != "text" or any(may_be_special(text, self._symbols) for text in request.texts)

    def _take_all_apart(self, request: TranslationRequest, deadline: float | None) -> list[SegmentedText] | None:
        """Raises `TimeoutError` where nobody waits for it any more."""
        taken = [self._take_apart(number, text, request, deadline) for number, text in enumerate(request.texts)]
        return taken if request.format != "text" or any(text.is_special for text in taken) else None

    def _take_apart(self, number: int, text: str, request: TranslationRequest, deadline: float | None) -> SegmentedText:
        taken = SegmentedText(self._read(replace_lone_surrogates(text), request))
        for place, unit in enumerate(taken.document):
            if deadline is not None and self._clock() > deadline:
                raise TimeoutError
            if isinstance(unit, Unit):
                taken.sentences[place] = list(self._sentences(number, unit, request))
        return taken

    def _read(self, text: str, request: TranslationRequest) -> Document:
        if request.format == "html":
            return to_document(read_html(text, request.markup), self._symbols)
        if request.format == "xml":
            return to_document(read_xml(text, request.markup), self._symbols)
        return (read_whole if request.options.is_about_whole_texts else read_text)(text, self._symbols)

    def _sentences(self, number: int, unit: Unit, request: TranslationRequest) -> list[Sentence]:
        masked = unit.masked(_MASK)
        is_whole = request.options.is_about_whole_texts
        found: list[Sentence] = []
        place = 0
        for segment in [whole(masked)] if is_whole else split(masked, request.source, self._fits):
            start = place + len(segment.before)
            end = start + len(segment.text)
            place = end + len(segment.after)
            if found and unit.is_inside_copied(start):
                found[-1].end = end  # nothing that is copied has two sentences
            elif start < end:
                found.append(Sentence(number, unit, start, end, segment.continues))
        return found

    def _fits(self, text: str) -> bool:
        while _MASK * 4 in text:
            text = text.replace(_MASK * 4, _NAME)
        return self._tokenizer.count_tokens(text) <= self._shapes.max_source_tokens

    def _put_all_together(self, texts: Sequence[SegmentedText], request: TranslationRequest) -> list[Translation]:
        return [self._put_together(text, request) for text in texts]

    def _put_together(self, text: SegmentedText, request: TranslationRequest) -> Translation:
        best, *others = (self._alternative(text, rank) for rank in range(request.options.num_hypotheses))
        decoded = _completions(text)
        chosen = [hypothesis for sentence in text.all_sentences for hypothesis in _hypotheses(sentence, 0)]
        return Translation(
            best.text,
            sum(len(completion.request.source) for completion in decoded),
            sum(map(num_tokens, chosen)),
            FinishReason.of_all(hypothesis.finish_reason for hypothesis in chosen),
            best.score,
            tuple(others),
            best.log_probability,
            tuple(
                sentence_details(done.request.source, hypothesis, request.options, self._tokenizer)
                for done, hypothesis in zip(decoded, chosen, strict=True)
            )
            if request.options.wants_details
            else (),
        )

    def _alternative(self, text: SegmentedText, rank: int) -> Alternative:
        written = "".join(
            part if isinstance(part, str) else _rendered(part, text.sentences[place], rank)
            for place, part in enumerate(text.document)
        )
        chosen = [hypothesis for sentence in text.all_sentences for hypothesis in _hypotheses(sentence, rank)]
        total_tokens = sum(map(num_tokens, chosen))
        if not total_tokens:
            return Alternative(written, math.nan)
        score = sum(hypothesis.score * num_tokens(hypothesis) for hypothesis in chosen) / total_tokens
        return Alternative(written, score, math.fsum(hypothesis.log_probability for hypothesis in chosen))


async def _worked(request: TranslationRequest, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` gives; for a long request it is done on a worker thread."""
    if request.num_characters <= _INLINE_CHARACTERS:
        return work(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_WORKERS, partial(work, *args, **kwargs))


def _begin(attempts: Attempts, sentences: Iterable[Sentence], attempt: int) -> list[Request]:
    return [each for sentence in sentences for each in attempts.begin(sentence, attempt)]


def _unsettled(
    attempts: Attempts, sentences: Iterable[Sentence], completions: Mapping[int, Completion]
) -> list[Sentence]:
    return [sentence for sentence in sentences if not attempts.settle(sentence, completions)]


def _rendered(unit: Unit, sentences: Sequence[Sentence], rank: int) -> str:
    """The unit's translation of this rank, with what stood between its sentences."""
    text, place = "", 0
    blocks: list[Block] = []
    outputs: list[str] = []
    for sentence in sentences:
        text += unit.text[place : sentence.start]
        for part in _parts(sentence, rank):
            target = [(len(text) + start, len(text) + end) for start, end in part.block.target]
            blocks.append(replace(part.block, target=target))
            outputs += part.outputs
            text += part.text
        place = sentence.end
    return render(unit, text + unit.text[place:], blocks, outputs)


def _parts(sentence: Sentence, rank: int) -> list[Part]:
    """What a sentence is made of; where there are fewer answers than ranks, of the last."""
    return [
        each if isinstance(each, Part) else each.answers[min(rank, len(each.answers) - 1)][0]
        for each in sentence.made_of
    ]


def _hypotheses(sentence: Sentence, rank: int) -> list[Hypothesis]:
    return [job.answers[min(rank, len(job.answers) - 1)][1] for job in sentence.jobs]


def _completions(text: SegmentedText) -> list[Completion]:
    """Of the attempts that came out, in order."""
    return [job.completion for sentence in text.all_sentences for job in sentence.jobs if job.completion is not None]


def _sum(first: Phases, second: Phases) -> Phases:
    """Attempts come one after the other."""
    return Phases(
        first.tokenize_seconds + second.tokenize_seconds,
        first.queue_seconds + second.queue_seconds,
        first.encode_seconds + second.encode_seconds,
        first.decode_seconds + second.decode_seconds,
        first.time_to_first_token_seconds or second.time_to_first_token_seconds,
    )
