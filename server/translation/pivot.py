"""Translation through a third language: the second model reads the first model's translation."""

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
    """Translates texts with one model or several."""

    async def translate(self, request: TranslationRequest, stream: TextStream | None = None) -> TranslationResult:
        """Translate all texts, in their order. The `stream` receives them as they become final."""
        ...


class LastPipeline(TextPipeline, Protocol):
    """A pipeline that can check options before it translates."""

    def check(self, request: TranslationRequest) -> None:
        """Raise `InvalidRequest` or `TextTooLong` for options that it does not support, for any text."""
        ...


class PivotPipeline:
    """Two pipelines, one after the other. `pivot` is the language between them, by its tags in both.

    Beams count for both; hypotheses, scores and options about the translation apply to the second.
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

    async def translate(self, request: TranslationRequest, stream: TextStream | None = None) -> TranslationResult:
        """Translate all texts, in their order; tokens, phases and splits are those of both together.

        Raises as `Pipeline.translate` does, and `InvalidRequest` for details that relate source and target tokens.
        """
        if request.options.wants_details:
            raise InvalidRequest(
                f"no model translates from {request.source} to {request.target} directly: "
                f"through {self._pivot[0]} there are no scores, alternatives or alignments of tokens"
            )
        if request.glossary is not None:
            raise InvalidRequest(
                f"no model translates from {request.source} to {request.target} directly: "
                f"a glossary does not work through {self._pivot[0]}"
            )
        self._second.check(request)  # before the first one begins
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
            # At least a moment, so that the second pipeline raises the error for the deadline.
            seconds_left = max(seconds_left - (self._clock() - begun), 1e-3)
        second = await self._second.translate(
            replace(
                request,
                texts=tuple(translation.text for translation in first.translations),
                source=self._pivot[1],
                timeout_seconds=seconds_left,
                size_is_checked=True,
                accepted_earlier=True,
            ),
            stream,
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
    """Return the phases of both pipelines. The first token of the answer comes after the first pipeline has ended."""
    before_second = first.queue_seconds + first.encode_seconds + first.decode_seconds
    return Phases(
        first.tokenize_seconds + second.tokenize_seconds,
        first.queue_seconds + second.queue_seconds,
        first.encode_seconds + second.encode_seconds,
        first.decode_seconds + second.decode_seconds,
        before_second + second.time_to_first_token_seconds,
    )
