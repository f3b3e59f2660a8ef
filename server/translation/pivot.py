"""Translation through a third language: the second model reads the first model's translation."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest
from server.interface.interruption import checkpoint
from server.interface.request import FinishReason
from server.text.glossary import MAX_TERM_CHARACTERS, Glossary
from server.text.readers.visible_text import visible_text
from server.translation.deadline import Deadline
from server.translation.text_stream import TextStream
from server.translation.types import Phases, TranslationRequest, TranslationResult
from server.translation.worker_threads import runner_for

_NO_GLOSSARIES = (None, None)


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
    With a glossary, the first translates its terms on their own and then must use these translations, which the second
    takes for the terms.
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
        self._second.check(request)  # before the first one begins
        begun = self._clock()
        options = DecodingOptions(
            beam_size=request.options.beam_size,
            length_penalty=request.options.length_penalty,
            localize_numbers=request.options.localize_numbers,
            if_already_target=request.options.if_already_target,
            if_untranslatable=request.options.if_untranslatable,
            if_incomplete=request.options.if_incomplete,
        )
        to_pivot = replace(request, target=self._pivot[0], options=options, formality=None)
        glossaries = await self._glossaries(to_pivot)
        if glossaries != _NO_GLOSSARIES:
            to_pivot = replace(to_pivot, timeout_seconds=self._seconds_left(request, begun), accepted_earlier=True)
        first = await self._first.translate(replace(to_pivot, glossary=glossaries[0]))
        second = await self._second.translate(
            replace(
                request,
                texts=tuple(translation.text for translation in first.translations),
                source=self._pivot[1],
                glossary=glossaries[1],
                timeout_seconds=self._seconds_left(request, begun),
                size_is_checked=True,
                accepted_earlier=True,
            ),
            stream,
        )
        return _joined(first, second)

    async def _glossaries(self, request: TranslationRequest) -> tuple[Glossary | None, Glossary | None]:
        """Return a glossary for each step: the pivot has the first model's translations of the terms in these texts."""
        glossary = request.glossary
        if glossary is None:
            return _NO_GLOSSARIES
        begun, seconds = self._clock(), request.timeout_seconds
        deadline = Deadline.of(None if seconds is None else begun + seconds, begun, self._clock)
        run = runner_for(request.num_characters, request.format == "text", deadline)
        terms = await run(_terms_of, request, glossary)
        if not terms:
            return _NO_GLOSSARIES
        alone = replace(request, texts=tuple(terms), glossary=None, format="text", size_is_checked=True)
        result = await self._first.translate(alone)
        to_pivot: dict[str, tuple[str, ...]] = {}
        from_pivot: dict[str, str | Sequence[str]] = {}
        for term, translation in zip(terms, result.translations, strict=True):
            found = " ".join(translation.text.split()).rstrip(".!?…;:, ") or term
            if len(found) > MAX_TERM_CHARACTERS:
                continue
            lowered = found.lower()
            # A model gives a lone word a capital that it has in no sentence.
            to_pivot[term] = (found, lowered) if term == term.lower() else (found,)
            from_pivot.setdefault(lowered, glossary.entries[term])
        return (Glossary(to_pivot), Glossary(from_pivot)) if to_pivot else _NO_GLOSSARIES

    def _seconds_left(self, request: TranslationRequest, begun: float) -> float | None:
        """Return the rest of the time; at least a moment, so that the next step raises the error for the deadline."""
        if request.timeout_seconds is None:
            return None
        return max(request.timeout_seconds - (self._clock() - begun), 1e-3)


def _terms_of(request: TranslationRequest, glossary: Glossary) -> list[str]:
    """Return the terms of a glossary that the texts of a request have, each once."""
    found: dict[str, None] = {}
    for text in request.texts:
        checkpoint()
        found |= dict.fromkeys(glossary.source_terms(visible_text(text, request.format, request.markup)))
    return list(found)


def _joined(first: TranslationResult, second: TranslationResult) -> TranslationResult:
    translations = [
        replace(
            end,
            source_tokens=begin.source_tokens,
            finish_reason=FinishReason.of_all((begin.finish_reason, end.finish_reason)),
            recovered=begin.recovered + end.recovered,
            incomplete=begin.incomplete + end.incomplete,
        )
        for begin, end in zip(first.translations, second.translations, strict=True)
    ]
    return TranslationResult(
        translations,
        _sum(first.phases, second.phases),
        first.sentence_tokens + second.sentence_tokens,
        first.num_splits + second.num_splits,
        second.seed,
        second.kept_items,
        second.kept_sentences,
        Counter(first.outcomes) + Counter(second.outcomes),
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
