"""Text in, text out: splits, submits, gathers, reassembles. The only thing routes call."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from export.bundle import Bundle
from server.errors import DeadlineExceeded, Draining, EngineFailed, TextTooLong
from server.feed import TextFeed
from server.generator import Generator
from server.request import Completion, FinishReason, GenerationParams, Hypothesis, Request, Timings
from server.text.sentences import Segment, join, split
from server.text.tokenizer import Tokenizer, replace_lone_surrogates
from server.translation import (
    Alternative,
    Phases,
    Translation,
    TranslationLimits,
    TranslationRequest,
    TranslationResult,
)

# Requests of more characters than this are taken apart and put together on a worker thread: on the event loop they
# would hold up everybody else's answers for longer than a change of threads costs.
_INLINE_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A text taken apart. Each segment has its request, or None where there is nothing to translate."""

    segments: list[Segment]
    requests: list[Request | None] = field(default_factory=list)


class Translator:
    """Translates with one model. `translate` may run many times at once on one event loop."""

    def __init__(
        self, generator: Generator, limits: TranslationLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._generator = generator
        self._limits = limits
        self._clock = clock
        self._tokenizer = Tokenizer(generator.bundle)

    @property
    def bundle(self) -> Bundle:
        """The model it translates with."""
        return self._generator.bundle

    async def translate(self, request: TranslationRequest, feed: TextFeed | None = None) -> TranslationResult:
        """All texts translated, in their order; `feed` gets them meanwhile, as they become final.

        What was taken from the feed, and what is left to take when this returns, are the texts of the result.

        Raises `InvalidRequest` or `TextTooLong` before anything is decoded, `DeadlineExceeded`, and whatever
        `Generator.generate` raises. Cancelling it frees the rows of all its sentences.
        """
        arrived = self._clock()
        self._limits.check_size(request)
        params = self._limits.generation_params(request, self.bundle.config.shapes)
        deadline = self._limits.deadline(request, arrived)
        inline = request.num_characters <= _INLINE_CHARACTERS
        if inline:
            prepared = self._prepare(request, params, deadline)
        else:
            prepared = await asyncio.to_thread(self._prepare, request, params, deadline)
        tokenized = self._clock()
        if feed is not None:
            feed.open([(text.segments, text.requests) for text in prepared], self._tokenizer)
        completions = await self._generate(prepared, tokenized)
        for completion in completions.values():
            _check(completion, allowed_seconds=math.inf if deadline is None else deadline - arrived)
        if feed is not None:
            feed.complete(completions)
        if inline:
            translations = self._assemble(prepared, completions, params.num_hypotheses)
        else:
            translations = await asyncio.to_thread(self._assemble, prepared, completions, params.num_hypotheses)
        return TranslationResult(
            translations,
            _phases(tokenized - arrived, completions),
            [(len(done.request.source), _num_tokens(done.hypotheses[0])) for done in completions.values()],
            sum(segment.continues for text in prepared for segment in text.segments),
        )

    def _prepare(
        self, request: TranslationRequest, params: GenerationParams, deadline: float | None
    ) -> list[_Prepared]:
        return [self._prepare_text(text, request, params, deadline) for text in request.texts]

    def _prepare_text(
        self, text: str, request: TranslationRequest, params: GenerationParams, deadline: float | None
    ) -> _Prepared:
        prepared = _Prepared(split(replace_lone_surrogates(text), request.source, self._fits))
        max_tokens = self.bundle.config.shapes.max_source_tokens
        for segment in prepared.segments:
            if not segment.has_words:
                prepared.requests.append(None)
                continue
            source = self._tokenizer.encode(segment.text, request.target)
            if len(source) > max_tokens:
                raise TextTooLong(
                    f"a part of the text that cannot be divided has {len(source)} tokens; this model takes {max_tokens}"
                )
            prepared.requests.append(Request(source, params, Timings(arrived=0.0), deadline))
        return prepared

    def _fits(self, text: str) -> bool:
        return self._tokenizer.count_tokens(text) <= self.bundle.config.shapes.max_source_tokens

    async def _generate(self, prepared: Sequence[_Prepared], now: float) -> dict[int, Completion]:
        """Completions of all sentences by request id, in the order of the texts."""
        requests = [request for text in prepared for request in text.requests if request is not None]
        if not requests:
            return {}
        for request in requests:
            request.timings.arrived = now
        # Sentences of like length share an encoder run with little padding, and long ones take longest to decode.
        longest_first = sorted(requests, key=lambda request: len(request.source), reverse=True)
        completions = {done.request.id: done for done in await self._generator.generate(longest_first)}
        return {request.id: completions[request.id] for request in requests}

    def _assemble(
        self, prepared: Sequence[_Prepared], completions: Mapping[int, Completion], num_hypotheses: int
    ) -> list[Translation]:
        return [self._assemble_text(text, completions, num_hypotheses) for text in prepared]

    def _assemble_text(
        self, prepared: _Prepared, completions: Mapping[int, Completion], num_hypotheses: int
    ) -> Translation:
        done = [None if request is None else completions[request.id] for request in prepared.requests]
        best, *others = (self._alternative(prepared.segments, done, rank) for rank in range(num_hypotheses))
        decoded = [completion for completion in done if completion is not None]
        was_cut = any(completion.finish_reason is FinishReason.LENGTH for completion in decoded)
        return Translation(
            best.text,
            sum(len(completion.request.source) for completion in decoded),
            sum(_num_tokens(completion.hypotheses[0]) for completion in decoded),
            FinishReason.LENGTH if was_cut else FinishReason.STOP,
            best.score,
            tuple(others),
        )

    def _alternative(
        self, segments: Sequence[Segment], completions: Sequence[Completion | None], rank: int
    ) -> Alternative:
        chosen = [None if done is None else _ranked(done.hypotheses, rank) for done in completions]
        texts = [
            segment.text if hypothesis is None else self._tokenizer.decode(hypothesis.token_ids)
            for segment, hypothesis in zip(segments, chosen, strict=True)
        ]
        scored = [(hypothesis.score, _num_tokens(hypothesis)) for hypothesis in chosen if hypothesis is not None]
        num_tokens = sum(count for _, count in scored)
        score = sum(score * count for score, count in scored) / num_tokens if num_tokens else math.nan
        return Alternative(join(segments, texts), score)


def _check(completion: Completion, allowed_seconds: float) -> None:
    if completion.error is not None:
        raise EngineFailed("the engine failed on this request; the log has the cause") from completion.error
    if completion.finish_reason is FinishReason.DEADLINE:
        raise DeadlineExceeded(f"not finished within {allowed_seconds:g} seconds; send less text, or try again later")
    if not completion.hypotheses:
        raise Draining("the server stopped before this request was finished; send it again")


def _ranked(hypotheses: Sequence[Hypothesis], rank: int) -> Hypothesis:
    """The hypothesis of this rank, or the last where there are fewer."""
    return hypotheses[min(rank, len(hypotheses) - 1)]


def _num_tokens(hypothesis: Hypothesis) -> int:
    """Tokens that were generated: the end-of-sequence token counts where it was reached."""
    return len(hypothesis.token_ids) + (hypothesis.finish_reason is FinishReason.STOP)


def _phases(tokenize_seconds: float, completions: Mapping[int, Completion]) -> Phases:
    timings = [completion.request.timings for completion in completions.values()]
    return Phases(
        tokenize_seconds,
        max((timing.queue_seconds for timing in timings), default=0.0),
        max((timing.encode_seconds for timing in timings), default=0.0),
        max((timing.decode_seconds for timing in timings), default=0.0),
        max((timing.first_token - timing.arrived for timing in timings), default=0.0),
    )
