"""Translation through a third language: the first model's answer is what the second model reads."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest
from server.interface.request import FinishReason
from server.translation.text_stream import TextStream
from server.translation.types import Phases, TranslationRequest, TranslationResult


class TextPipeline(Protocol):
    """Text in, text out, with one model or several."""

    async def translate(self, request: TranslationRequest, feed: TextStream | None = None) -> TranslationResult:
        """All texts translated, in their order; `feed` gets them meanwhile, as they become final."""
        ...


class LastPipeline(TextPipeline, Protocol):
    """One that says beforehand what it will not do."""

    def check(self, request: TranslationRequest) -> None:
        """Raise `InvalidRequest` or `TextTooLong` for options that it has not, whatever the texts are."""
        ...


class PivotPipeline:
    """Two translators, one after the other. `pivot` is the language between them as the first and the second call it.

    Beams count for both; hypotheses, scores and what must or must not be said belong to the second.
    """

    def __init__(
        self,
        first: TextPipeline,
        second: LastPipeline,
        pivot: tuple[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first = first
        self._second = second
        self._pivot = pivot
        self._clock = clock

    async def translate(self, request: TranslationRequest, feed: TextStream | None = None) -> TranslationResult:
        """All texts translated, in their order; tokens, phases and splits are those of both together.

        Raises as `Translator.translate` does, and `InvalidRequest` for details that tie source tokens to target tokens.
        """
        if request.options.wants_details:
            raise InvalidRequest(
                f"no model here translates from {request.source} to {request.target} directly: "
                f"through {self._pivot[0]} there are no scores, alternatives or alignments of tokens"
            )
        if request.glossary is not None:
            raise InvalidRequest(
                f"no model here translates from {request.source} to {request.target} directly: "
                f"a glossary cannot be kept through {self._pivot[0]}"
            )
        self._second.check(request)  # before the first has anything to do
        begun = self._clock()
        first = await self._first.translate(
            replace(
                request,
                target=self._pivot[0],
                options=DecodingOptions(
                    beam_size=request.options.beam_size, length_penalty=request.options.length_penalty
                ),
            )
        )
        seconds_left = request.timeout_seconds
        if seconds_left is not None:
            # At least a moment: the second translator then says itself that the time was up.
            seconds_left = max(seconds_left - (self._clock() - begun), 1e-3)
        second = await self._second.translate(
            replace(
                request,
                texts=tuple(translation.text for translation in first.translations),
                source=self._pivot[1],
                timeout_seconds=seconds_left,
                size_is_checked=True,
                continues=True,
            ),
            feed,
        )
        return _joined(first, second)


def _joined(first: TranslationResult, second: TranslationResult) -> TranslationResult:
    translations = [
        replace(
            end,
            source_tokens=begin.source_tokens,
            finish_reason=FinishReason.of_all((begin.finish_reason, end.finish_reason)),
        )
        for begin, end in zip(first.translations, second.translations, strict=True)
    ]
    return TranslationResult(
        translations,
        _sum(first.phases, second.phases),
        first.sentence_tokens + second.sentence_tokens,
        first.num_splits + second.num_splits,
        second.seed,
    )


def _sum(first: Phases, second: Phases) -> Phases:
    """One after the other. The first token of the answer comes when the first leg is over."""
    before_second = first.queue_seconds + first.encode_seconds + first.decode_seconds
    return Phases(
        first.tokenize_seconds + second.tokenize_seconds,
        first.queue_seconds + second.queue_seconds,
        first.encode_seconds + second.encode_seconds,
        first.decode_seconds + second.decode_seconds,
        before_second + second.time_to_first_token_seconds,
    )
