"""Text in, text out: splits, submits, gathers, reassembles. The only thing routes call."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.engine_client import EngineClient
from server.interface.errors import TextTooLong
from server.interface.request import Completion, FinishReason, Hypothesis, Request, SentenceParams, Timings, TokenIds
from server.text.glossary import Glossary, capitalized_like
from server.text.segmentation.sentences import Segment, join, split, whole
from server.text.tokenizers.marian import Tokenizer
from server.text.unicode_text import replace_lone_surrogates
from server.translation.limits import TranslationLimits
from server.translation.protected_pipeline import ProtectedPipeline
from server.translation.scoring import Scorer
from server.translation.sentence_params import ParamsResolver
from server.translation.submission import dispatch, num_tokens, phases, sentence_tokens, time_is_up
from server.translation.text_stream import TextStream
from server.translation.token_details import sentence_details
from server.translation.types import Alternative, SentenceDetails, Translation, TranslationRequest, TranslationResult

# Requests of more characters than this are taken apart and put together on a worker thread: on the event loop they
# would hold up everybody else's answers for longer than a change of threads costs.
_INLINE_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A text taken apart. Each segment has its request, or None where there is nothing to translate."""

    segments: list[Segment]
    requests: list[Request | None] = field(default_factory=list)


class Pipeline:
    """Translates with one model. `translate` may run many times at once on one event loop."""

    def __init__(
        self, generator: EngineClient, limits: TranslationLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._generator = generator
        self._limits = limits
        self._clock = clock
        self._tokenizer = Tokenizer(generator.bundle)
        self._lossless = ProtectedPipeline(generator, limits, self._tokenizer, clock)
        self.scorer = Scorer(generator, limits, self._tokenizer, clock)

    @property
    def bundle(self) -> Bundle:
        """The model it translates with."""
        return self._generator.bundle

    async def translate(self, request: TranslationRequest, feed: TextStream | None = None) -> TranslationResult:
        """All texts translated, in their order; `feed` gets them meanwhile, as they become final.

        Texts with anything but words are fed whole, at the end.

        What was taken from the feed, and what is left to take when this returns, are the texts of the result.

        Raises `InvalidRequest` or `TextTooLong` before anything is decoded, `DeadlineExceeded`, and whatever
        `EngineClient.generate` raises. Cancelling it frees the rows of all its sentences.
        """
        arrived = self._clock()
        self._limits.check_size(request)
        if (taken := await self._lossless.take_apart(request, arrived)) is not None:
            deadline = self._limits.deadline(request, arrived)
            # The engine looks at the time while it decodes; what comes before and after can take long here as well.
            try:
                async with asyncio.timeout(None if deadline is None else deadline - self._clock()):
                    result = await self._lossless.translate(request, taken, arrived)
            except TimeoutError:
                raise time_is_up(math.inf if deadline is None else deadline - arrived) from None
            if deadline is not None and self._clock() > deadline:
                raise time_is_up(deadline - arrived)
            if feed is not None:
                feed.open([([whole(each.text)], [None]) for each in result.translations], self._tokenizer)
                feed.wake()
            return result
        params = self._limits.sentence_params(request, self.bundle.config.shapes)
        deadline = self._limits.deadline(request, arrived)
        inline = request.num_characters <= _INLINE_CHARACTERS
        if inline:
            prepared = self._prepare(request, params, deadline)
        else:
            prepared = await asyncio.to_thread(self._prepare, request, params, deadline)
        tokenized = self._clock()
        allowed_seconds = math.inf if deadline is None else deadline - arrived
        requests = [request for text in prepared for request in text.requests if request is not None]
        if feed is not None:
            feed.open([(text.segments, text.requests) for text in prepared], self._tokenizer)
        completions = await dispatch(self._generator, requests, tokenized, allowed_seconds, request.continues)
        if feed is not None:
            feed.complete(completions)
        if inline:
            translations = self._assemble(prepared, completions, request)
        else:
            translations = await asyncio.to_thread(self._assemble, prepared, completions, request)
        return TranslationResult(
            translations,
            phases(tokenized - arrived, completions),
            sentence_tokens(list(completions.values())),
            sum(segment.continues for text in prepared for segment in text.segments),
            params.sampling.seed if params.sampling else None,
        )

    def check(self, request: TranslationRequest) -> None:
        """Raise `InvalidRequest` or `TextTooLong` for options that this server or this model has not, by any text."""
        resolver = self._resolver(request, self._limits.sentence_params(request, self.bundle.config.shapes))
        for number in range(len(request.texts)):
            resolver.resolve(number, 1)

    def _resolver(self, request: TranslationRequest, params: SentenceParams) -> ParamsResolver:
        return ParamsResolver(params, request.options, self._tokenizer, self.bundle.config.shapes)

    def _prepare(self, request: TranslationRequest, params: SentenceParams, deadline: float | None) -> list[_Prepared]:
        resolver = self._resolver(request, params)
        return [
            self._prepare_text(number, text, request, resolver, deadline) for number, text in enumerate(request.texts)
        ]

    def _prepare_text(
        self, number: int, text: str, request: TranslationRequest, resolver: ParamsResolver, deadline: float | None
    ) -> _Prepared:
        readable = replace_lone_surrogates(text)
        max_tokens = self.bundle.config.shapes.max_source_tokens
        sources: dict[str, TokenIds] = {}

        def fits(part: str) -> bool:
            sources[part] = self._tokenizer.encode(part, request.target)
            return len(sources[part]) <= max_tokens

        is_whole = request.options.is_about_whole_texts
        prepared = _Prepared([whole(readable)] if is_whole else split(readable, request.source, fits))
        for segment in prepared.segments:
            if not segment.has_words:
                prepared.requests.append(None)
                continue
            source = sources.get(segment.text)
            if source is None:
                source = self._tokenizer.encode(segment.text, request.target)
            if len(source) > max_tokens:
                what = "a text taken as one sentence" if is_whole else "a part of the text that cannot be divided"
                raise TextTooLong(f"{what} has {len(source)} tokens; this model takes {max_tokens}")
            terms = request.glossary.target_terms(segment.text) if request.glossary else ()
            asked = resolver.resolve(number, len(source), terms)
            prepared.requests.append(
                Request(source, asked, Timings(arrived=0.0), deadline, shared=not request.bypass_cache)
            )
        return prepared

    def _assemble(
        self, prepared: Sequence[_Prepared], completions: Mapping[int, Completion], request: TranslationRequest
    ) -> list[Translation]:
        return [self._assemble_text(text, completions, request) for text in prepared]

    def _assemble_text(
        self, prepared: _Prepared, completions: Mapping[int, Completion], request: TranslationRequest
    ) -> Translation:
        done = [None if request is None else completions[request.id] for request in prepared.requests]
        ranks = range(request.options.num_hypotheses)
        best, *others = (self._alternative(prepared.segments, done, rank, request.glossary) for rank in ranks)
        decoded = [completion for completion in done if completion is not None]
        return Translation(
            best.text,
            sum(len(completion.request.source) for completion in decoded),
            sum(num_tokens(completion.hypotheses[0]) for completion in decoded),
            FinishReason.of_all(completion.finish_reason for completion in decoded),
            best.score,
            tuple(others),
            best.log_probability,
            tuple(self._details(completion, request.options) for completion in decoded)
            if request.options.wants_details
            else (),
        )

    def _details(self, completion: Completion, options: DecodingOptions) -> SentenceDetails:
        return sentence_details(completion.request.source, completion.hypotheses[0], options, self._tokenizer)

    def _alternative(
        self,
        segments: Sequence[Segment],
        completions: Sequence[Completion | None],
        rank: int,
        glossary: Glossary | None,
    ) -> Alternative:
        chosen = [None if done is None else _ranked(done.hypotheses, rank) for done in completions]
        texts = [
            segment.text if hypothesis is None else self._tokenizer.decode(hypothesis.token_ids)
            for segment, hypothesis in zip(segments, chosen, strict=True)
        ]
        if glossary is not None:
            texts = [
                capitalized_like(segment.text, text, glossary.target_terms(segment.text))
                for segment, text in zip(segments, texts, strict=True)
            ]
        decoded = [hypothesis for hypothesis in chosen if hypothesis is not None]
        total_tokens = sum(map(num_tokens, decoded))
        if not total_tokens:
            return Alternative(join(segments, texts), math.nan)
        score = sum(hypothesis.score * num_tokens(hypothesis) for hypothesis in decoded) / total_tokens
        return Alternative(
            join(segments, texts), score, math.fsum(hypothesis.log_probability for hypothesis in decoded)
        )


def _ranked(hypotheses: Sequence[Hypothesis], rank: int) -> Hypothesis:
    """The hypothesis of this rank, or the last where there are fewer."""
    return hypotheses[min(rank, len(hypotheses) - 1)]
