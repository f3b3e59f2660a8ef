"""Translation of texts: detects missing source languages, chooses routes and runs their pipelines.

All protocols translate through this service.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add

from server.interface.errors import InvalidRequest, UnsupportedPair
from server.interface.interruption import checkpoint
from server.interface.request import FinishReason
from server.text.formality import Formality, formality_languages, has_formality
from server.text.language_detection import Detection, Detector
from server.text.language_tags import match_language
from server.text.readers.visible_text import visible_text
from server.text.unicode_text import replace_lone_surrogates
from server.translation.execution import INLINE_CHARACTERS, PLAIN_TEXTS, Deadline, ThreadRunner, all_or_none, runner_for
from server.translation.limits import TranslationLimits
from server.translation.lines import JoinedLines
from server.translation.router import Route, Router
from server.translation.text_stream import TextStream
from server.translation.types import (
    KeepReason,
    KeptSentence,
    Outcome,
    Phases,
    TokenCounts,
    Translation,
    TranslationRequest,
    TranslationResult,
    longest,
)

AUTO = "auto"  # as source language: detect it for each text
_DETECTION_CHARACTERS = 200  # whose translation on the event loop takes as long as detecting a language


@dataclass(frozen=True, slots=True)
class TranslationOutcome:
    """The translations of a request, and the routes that they took.

    With `AUTO` as source, `detected` has one entry for each text, None for a text without letters; otherwise it is
    empty. `routes` has each route once. `unchanged` has the indices of the texts that no model translated, because
    they are in the target language already or without letters.
    """

    result: TranslationResult
    detected: tuple[Detection | None, ...]
    routes: tuple[Route, ...]
    unchanged: frozenset[int] = frozenset()

    @property
    def model(self) -> str | None:
        """The names of the models; None if there was nothing to translate."""
        return ", ".join(route.name for route in self.routes) or None

    @property
    def pivot(self) -> str | None:
        """The pivot language of a route, if one has it."""
        return next((route.pivot for route in self.routes if route.pivot is not None), None)


class TranslationService:
    """Translates texts with the models of a server. `translate` may run many times at once on one event loop."""

    def __init__(self, router: Router, detector: Detector, limits: TranslationLimits) -> None:
        self._router = router
        self._detector = detector
        self._limits = limits

    def change_models(self, router: Router, detector: Detector) -> None:
        """Translate later calls with other models. Running calls keep theirs."""
        self._router = router
        self._detector = detector

    @property
    def max_text_characters(self) -> int | None:
        """The maximum number of characters in all texts of a request; None is no limit."""
        return self._limits.max_text_characters

    async def translate(
        self, request: TranslationRequest, source: str | None, target: str | None, stream: TextStream | None = None
    ) -> TranslationOutcome:
        """Translate from and to these languages: None is the only possible one, and `AUTO` as source detects it.

        The `stream` receives the texts as they become final. A text that is already in the target language, or in none,
        stays as it is. Raises as `Router.find` and `Pipeline.translate` do.
        """
        joins = self._limits.joins(request)
        if stream is not None and (joins or request.glossary is not None or request.formality is not None):
            # They may change the beginning of a translation once it is complete.
            done = await self.translate(request, source, target)
            for index, translation in enumerate(done.result.translations):
                stream.add_text(index, translation.text)
            return done
        self._limits.check_size(request)
        if joins:
            lines = JoinedLines.of(request.texts)
            done = await self.translate(lines.request(request), source, target)
            return lines.divided(done, done.routes[0].target if done.routes else "")
        router = self._router
        with router.in_use():
            return await self._translate(router, request, source, target, stream)

    async def _translate(
        self,
        router: Router,
        request: TranslationRequest,
        source: str | None,
        target: str | None,
        stream: TextStream | None,
    ) -> TranslationOutcome:
        if source != AUTO:
            route = router.find(source, target)
            result = await route.pipeline.translate(self._for_route(request, range(len(request.texts)), route), stream)
            return TranslationOutcome(result, (), (route,))
        target = _target(router, target)
        detected = await self.detect(request, target)
        forced = None if self._limits.keeps_target(request.options) else partial(self._other_language, request, target)
        parts = _route_parts(router, detected, target, forced)
        unchanged = frozenset(range(len(request.texts))).difference(*(part.indices for part in parts))
        if stream is not None:
            for index in unchanged:
                stream.add_text(index, replace_lone_surrogates(request.texts[index]))
        request = replace(request, language_is_detected=True)
        if len(parts) == 1 and not unchanged:
            result = await self._translate_part(request, parts[0], stream)
        else:
            results = await all_or_none([self._translate_part(request, part, stream) for part in parts])
            result = merge(request.texts, [part.indices for part in parts], results)
            result = with_kept(result, unchanged, detected)
        return TranslationOutcome(
            result,
            tuple(detected),
            tuple(part.route for part in parts),
            unchanged,
        )

    def check(self, request: TranslationRequest, source: str | None, target: str | None) -> str:
        """Return the target language. Raises for an invalid request, for any text."""
        if source == AUTO:
            return _target(self._router, target)
        route = self._router.find(source, target)
        _formality(request, route.target)
        self._limits.sentence_params(request, route.steps[-1].pipeline.bundle.config.shapes)
        return route.target

    async def detect(self, request: TranslationRequest, target: str | None = None) -> list[Detection | None]:
        """Return the language of each text, without its markup; None for a text without letters.

        A text is in the `target` language for certain or not at all.
        """

        def detect_all() -> list[Detection | None]:
            return self._detector.detect_all((self._visible(text, request) for text in request.texts), target)

        arrived = time.monotonic()
        deadline = Deadline.of(self._limits.deadline(request, arrived), arrived, time.monotonic)
        # Each text is a matrix product of the detector, however short it is.
        size = request.num_characters + _DETECTION_CHARACTERS * len(request.texts)
        inline_characters = -1 if request.in_background else INLINE_CHARACTERS
        return await runner_for(size, request.format == "text", deadline, inline_characters)(detect_all)

    def _visible(self, text: str, request: TranslationRequest) -> str:
        checkpoint()
        return visible_text(text, request.format, request.markup)

    def _other_language(self, request: TranslationRequest, target: str, index: int) -> str | None:
        """Return the most likely language of a text besides the target; None if there is no other."""
        text = visible_text(request.texts[index], request.format, request.markup)
        ranked = [each.language for each in self._detector.rank(text)]
        return next((each for each in ranked if not match_language(each, [target])), None)

    async def rank(self, texts: Sequence[str]) -> list[list[Detection]]:
        """Return for each text all languages that it may be in, the most likely first; none without a letter."""
        request = TranslationRequest(tuple(texts), "", "")
        self._limits.check_size(request)
        arrived = time.monotonic()
        deadline = Deadline.of(self._limits.deadline(request, arrived), arrived, time.monotonic)

        def rank_all() -> list[list[Detection]]:
            ranked = []
            for text in texts:
                checkpoint()
                ranked.append(self._detector.rank(text))
            return ranked

        return await ThreadRunner(PLAIN_TEXTS, deadline)(rank_all)

    async def _translate_part(
        self, request: TranslationRequest, part: "_Part", stream: TextStream | None
    ) -> TranslationResult:
        its_stream = None if stream is None else stream.view(part.indices)
        return await part.route.pipeline.translate(self._for_route(request, part.indices, part.route), its_stream)

    def _for_route(self, request: TranslationRequest, indices: Sequence[int], route: Route) -> TranslationRequest:
        """Return the request for the texts with these indices, with the languages of their route and a time limit."""
        options = request.options
        if isinstance(options.target_prefix, tuple):
            if len(options.target_prefix) != len(request.texts):
                raise InvalidRequest(
                    f"`target_prefix` has {len(options.target_prefix)} entries for {len(request.texts)} texts; "
                    "send one for each text, or a single one for all"
                )
            options = options.with_changes(target_prefix=tuple(options.target_prefix[index] for index in indices))
        has_terms = request.glossary_source is None or bool(match_language(request.glossary_source, [route.source]))
        seconds = self._limits.max_timeout_seconds if request.timeout_seconds is None else request.timeout_seconds
        return replace(
            request,
            timeout_seconds=seconds,
            formality=_formality(request, route.target),
            texts=tuple(request.texts[index] for index in indices),
            glossary=request.glossary if has_terms else None,
            source=route.source,
            target=route.target,
            options=options,
            size_is_checked=True,
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """The texts, by their indices, that take one route."""

    route: Route
    indices: list[int]


def _target(router: Router, target: str | None) -> str:
    router.check_translates()
    languages = router.target_languages
    if target is None:
        if len(languages) != 1:
            raise UnsupportedPair(f"`target` is required; available: {', '.join(languages)}")
        return languages[0]
    found = match_language(router.canonical(target) or target, languages)
    if found is None:
        raise UnsupportedPair(f"no model translates to {target}; available: {', '.join(languages)}")
    return found


def _route_parts(
    router: Router,
    detected: Sequence[Detection | None],
    target: str,
    forced: Callable[[int], str | None] | None = None,
) -> list[_Part]:
    """Return the texts by route. `forced` names the language that a text in the target language is translated from."""
    indices: dict[Route, list[int]] = {}
    for index, detection in enumerate(detected):
        language = None if detection is None else detection.language
        if language is not None and match_language(language, [target]):
            language = None if forced is None else forced(index)
        if language is not None:
            indices.setdefault(router.find(language, target), []).append(index)
    return [_Part(route, its_indices) for route, its_indices in indices.items()]


def _formality(request: TranslationRequest, target: str) -> Formality | None:
    if request.formality is None or has_formality(target):
        return request.formality
    if request.formality_is_optional:
        return None
    raise InvalidRequest(
        f"`formal` requires a target language with rules for its forms of address: {', '.join(formality_languages())}. "
        f"Given: {target}"
    )


def merge(
    texts: Sequence[str], indices: Sequence[Sequence[int]], results: Sequence[TranslationResult]
) -> TranslationResult:
    """Merge the results of parts in the order of the texts; a text in no part is its own translation."""
    translations = [Translation(replace_lone_surrogates(text), 0, 0, FinishReason.STOP, math.nan) for text in texts]
    for its_indices, result in zip(indices, results, strict=True):
        for index, translation in zip(its_indices, result.translations, strict=True):
            translations[index] = translation
    return TranslationResult(
        translations,
        reduce(longest, [result.phases for result in results], Phases()),
        reduce(add, [result.sentence_tokens for result in results], TokenCounts({}, {})),
        sum(result.num_splits for result in results),
        next((result.seed for result in results if result.seed is not None), None),
        sum((Counter(result.outcomes) for result in results), Counter[Outcome]()),
    )


def with_kept(
    result: TranslationResult, unchanged: Collection[int], detected: Sequence[Detection | None]
) -> TranslationResult:
    """Return the result with the reasons why texts were not translated."""
    translations = list(result.translations)
    for index in unchanged:
        reason = KeepReason.NO_WORDS if detected[index] is None else KeepReason.ALREADY_IN_TARGET_LANGUAGE
        if visible := translations[index].text.strip():
            translations[index] = replace(translations[index], kept=(KeptSentence(visible, reason),))
    return replace(result, translations=translations)
