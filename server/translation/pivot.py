"""Translation through a third language: the second model reads the first model's translation."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from server.interface.decoding_options import DecodingOptions
from server.interface.errors import DeadlineExceeded, InvalidRequest
from server.interface.interruption import checkpoint
from server.interface.request import FinishReason
from server.text.glossary import MAX_TERM_CHARACTERS, Glossary
from server.text.readers.visible_text import visible_text
from server.text.unicode_text import replace_lone_surrogates
from server.translation.execution import Deadline, runner_for
from server.translation.limits import TranslationLimits
from server.translation.text_stream import TextStream
from server.translation.types import (
    KeepReason,
    KeptSentence,
    MemoryLookup,
    MemoryMatch,
    Phases,
    SentenceQuality,
    TranslationRequest,
    TranslationResult,
)

_NO_GLOSSARIES = (None, None)


class TextPipeline(Protocol):
    """Translates texts with one model or several."""

    async def translate(self, request: TranslationRequest, stream: TextStream | None = None) -> TranslationResult:
        """Translate all texts, in their order. The `stream` receives them as they become final."""
        ...


class CheckedPipeline(TextPipeline, Protocol):
    """A pipeline that can check options before it translates."""

    @property
    def limits(self) -> TranslationLimits:
        """The limits and defaults of the server."""
        ...

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
        first: CheckedPipeline,
        second: CheckedPipeline,
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
        self._second.check(replace(request, source=self._pivot[1]))  # before the first one begins
        begun = self._clock()
        asked = request
        if has_quality := self._second.limits.estimates_quality(request.options):
            # The limit is for whole texts: sentences of the pivot language are not those of the source.
            wants_quality = request.options.return_quality or bool(request.options.min_quality)
            options = request.options.with_changes(return_quality=wants_quality, min_quality=0.0)
            request = replace(request, options=options)
        options = DecodingOptions(
            beam_size=request.options.beam_size,
            length_penalty=request.options.length_penalty,
            localize_numbers=request.options.localize_numbers,
            if_already_target=request.options.if_already_target,
            repair=request.options.repair,
            return_quality=request.options.return_quality,
            min_quality=request.options.min_quality,
            shortlist=request.options.shortlist,
        )
        memory = None if request.memory is None else _Recalled(request.memory, request.source, request.target)
        to_pivot = replace(request, target=self._pivot[0], options=options, formality=None, memory=memory)
        glossaries = await self._glossaries(to_pivot)
        if glossaries != _NO_GLOSSARIES:
            to_pivot = replace(to_pivot, timeout_seconds=self._seconds_left(request, begun), accepted_earlier=True)
        first = await self._first.translate(replace(to_pivot, glossary=glossaries[0]))
        from_pivot = replace(
            request,
            texts=tuple(translation.text for translation in first.translations),
            source=self._pivot[1],
            glossary=glossaries[1],
            memory=None if memory is None else memory.in_pivot(first),
            timeout_seconds=self._seconds_left(request, begun),
            size_is_checked=True,
            accepted_earlier=True,
        )
        try:
            second = await self._second.translate(from_pivot, stream)
        except DeadlineExceeded as error:
            earlier = first.phases.by_name()
            error.phase_seconds = {name: earlier[name] + seconds for name, seconds in error.phase_seconds.items()}
            raise
        result = _joined(first, second if memory is None else memory.reported(first, second))
        return self._with_qualities(asked, first, result, is_streamed=stream is not None) if has_quality else result

    def _with_qualities(
        self, request: TranslationRequest, first: TranslationResult, result: TranslationResult, *, is_streamed: bool
    ) -> TranslationResult:
        """Return the result with the quality of each text: the probability that both of its translations are good."""
        limits = self._second.limits
        keeps = limits.keeps_low_quality(request.options) and request.options.num_hypotheses == 1 and not is_streamed
        translations = []
        for source, begin, end in zip(request.texts, first.translations, result.translations, strict=True):
            if begin.quality is None or end.quality is None:
                translations.append(replace(end, quality=None, sentence_quality=()))
                continue
            whole = SentenceQuality(source, end.text, round(begin.quality * end.quality, 4))
            is_low = whole.quality < (limits.min_quality_of(request.options) or 0.0)
            end = replace(
                end,
                quality=whole.quality,
                sentence_quality=(whole,) if request.options.return_quality else (),
                low_quality=(whole,) if is_low else (),
            )
            if is_low and keeps:
                kept = (KeptSentence(source, KeepReason.LOW_QUALITY),)
                end = replace(end, text=replace_lone_surrogates(source), quality=None, kept=kept)
            translations.append(end)
        return replace(result, translations=translations)

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


class _Recalled:
    """The look-up in a translation memory for the first model, which translates all sentences, and for the second.

    The second model reads the first one's translation of a sentence, for which the memory has the translation of the
    sentence itself. What is similar to another sentence is only reported.
    """

    def __init__(self, memory: MemoryLookup, source: str, target: str) -> None:
        self._memory = memory
        self._languages = source, target
        self._matches: dict[str, MemoryMatch] = {}  # by sentences

    def find(self, text: str, source: str, target: str, *, is_sentence: bool = True) -> MemoryMatch | None:
        """Keep the match for a sentence, and return None."""
        if is_sentence and (match := self._memory.find(text, *self._languages)) is not None:
            self._matches[text] = match
        return None

    def in_pivot(self, first: TranslationResult) -> "_InPivot":
        """Return the equal matches by the first translations of their sentences."""
        named = (each for translation in first.translations for each in translation.memory)
        found = ((each.translation, self._matches.get(each.text)) for each in named)
        return _InPivot(
            {" ".join(text.split()): match for text, match in found if match is not None and match.is_exact}
        )

    def reported(self, first: TranslationResult, second: TranslationResult) -> TranslationResult:
        """Return the second result with what the memory has for the sentences of the source."""
        translations = []
        for begin, end in zip(first.translations, second.translations, strict=True):
            written = {" ".join(each.text.split()): each for each in end.memory}
            reports = []
            for each in begin.memory:
                match, after = self._matches.get(each.text), written.get(" ".join(each.translation.split()))
                is_lost = match is not None and match.is_exact and after is None  # in the second model's sentences
                translation = "" if after is None else after.translation
                reports.append(replace(each, translation=translation, match=None if is_lost else match))
            translations.append(replace(end, memory=tuple(reports)))
        return replace(second, translations=translations)


class _InPivot:
    """Translations from a memory, by texts in the pivot language."""

    def __init__(self, matches: Mapping[str, MemoryMatch]) -> None:
        self._matches = matches

    def find(self, text: str, source: str, target: str, *, is_sentence: bool = True) -> MemoryMatch | None:
        """Return the match for a text."""
        return self._matches.get(" ".join(text.split()))


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
            repaired=begin.repaired + end.repaired,
            incomplete=begin.incomplete + end.incomplete,
            missing_numbers=tuple(dict.fromkeys(begin.missing_numbers + end.missing_numbers)),
            invented_numbers=tuple(dict.fromkeys(begin.invented_numbers + end.invented_numbers)),
        )
        for begin, end in zip(first.translations, second.translations, strict=True)
    ]
    return TranslationResult(
        translations,
        _sum(first.phases, second.phases),
        first.sentence_tokens + second.sentence_tokens,
        first.num_splits + second.num_splits,
        second.seed,
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
