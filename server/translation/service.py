"""Texts in languages that somebody names or nobody knows, into one language: detects, finds who translates, asks them.

The only thing that routes call to get a translation, whatever their protocol.
"""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, fields, replace

from server.interface.errors import InvalidRequest, UnsupportedPair
from server.interface.request import FinishReason
from server.text.language_detection import Detection, Detector
from server.text.language_tags import match_language
from server.text.readers.visible_text import visible_text
from server.text.unicode_text import replace_lone_surrogates
from server.translation.limits import TranslationLimits
from server.translation.router import Route, Router
from server.translation.text_stream import TextStream
from server.translation.types import Phases, Translation, TranslationRequest, TranslationResult
from server.translation.worker_threads import INLINE_CHARACTERS

AUTO = "auto"  # as source: the language of each text is detected
_PHASE_NAMES = tuple(field.name for field in fields(Phases))


@dataclass(frozen=True, slots=True)
class TranslationOutcome:
    """What became of the texts, and who did it.

    `detected` has one entry a text where the source was `AUTO`, None in it for a text without letters; else it is
    empty. `routes` are those that were asked, each once.
    """

    result: TranslationResult
    detected: tuple[Detection | None, ...]
    routes: tuple[Route, ...]

    @property
    def model(self) -> str | None:
        """The models' names; None where nothing was to be translated."""
        return ", ".join(route.name for route in self.routes) or None

    @property
    def pivot(self) -> str | None:
        """The language that texts went through, where any did."""
        return next((route.pivot for route in self.routes if route.pivot is not None), None)


class TranslationService:
    """Of one server. `translate` may run many times at once on one event loop."""

    def __init__(self, catalogue: Router, detector: Detector, limits: TranslationLimits) -> None:
        self._catalogue = catalogue
        self._detector = detector
        self._limits = limits

    @property
    def max_text_characters(self) -> int | None:
        """Characters that all texts of a request may have; None is no limit."""
        return self._limits.max_text_characters

    async def translate(
        self, asked: TranslationRequest, source: str | None, target: str | None, feed: TextStream | None = None
    ) -> TranslationOutcome:
        """`asked`, from and to these languages instead of its own; None where only one is possible, `AUTO` to detect.

        `feed` gets the texts meanwhile, as they become final.
        A text that is in the target language already, or in none, comes back as it is. Raises as `Router.find` and
        `Translator.translate` do.
        """
        if feed is not None and asked.glossary is not None:
            # Its terms may change how a translation begins, when all of it is there.
            done = await self.translate(asked, source, target)
            for place, translation in enumerate(done.result.translations):
                feed.add_text(place, translation.text)
            return done
        self._limits.check_size(asked)
        if asked.timeout_seconds is None:
            asked = replace(asked, timeout_seconds=self._limits.max_timeout_seconds)
        if source != AUTO:
            route = self._catalogue.find(source, target)
            result = await route.pipeline.translate(_part(asked, range(len(asked.texts)), route), feed)
            return TranslationOutcome(result, (), (route,))
        if asked.glossary is not None:
            raise InvalidRequest("a glossary is of one language: name the source instead of having it detected")
        target = self._target(target)
        detected = await self.detect(asked)
        parts = self._share_out(detected, target)
        if feed is not None:
            for place in set(range(len(asked.texts))).difference(*(part.places for part in parts)):
                feed.add_text(place, replace_lone_surrogates(asked.texts[place]))
        results = await _all_or_none([self._translate_part(asked, part, feed) for part in parts])
        return TranslationOutcome(
            _merge(asked.texts, [part.places for part in parts], results),
            tuple(detected),
            tuple(part.route for part in parts),
        )

    def check(self, asked: TranslationRequest, source: str | None, target: str | None) -> str:
        """The language that is translated into. Raises for whatever is wrong with `asked`, whatever its texts are."""
        if source == AUTO:
            return self._target(target)
        route = self._catalogue.find(source, target)
        self._limits.sentence_params(asked, route.steps[-1].pipeline.bundle.config.shapes)
        return route.target

    async def detect(self, asked: TranslationRequest) -> list[Detection | None]:
        """The language of each text, mark-up not counted; None for a text without letters."""

        def detect_all() -> list[Detection | None]:
            return [self._detector.detect(visible_text(text, asked.format, asked.markup)) for text in asked.texts]

        return detect_all() if asked.num_characters <= INLINE_CHARACTERS else await asyncio.to_thread(detect_all)

    async def rank(self, text: str) -> list[Detection]:
        """All languages that `text` may be in, the likeliest first."""
        self._limits.check_size(TranslationRequest((text,), "", ""))
        return await asyncio.to_thread(self._detector.rank, text)

    def _target(self, target: str | None) -> str:
        languages = self._catalogue.target_languages
        if target is None:
            if len(languages) != 1:
                raise UnsupportedPair(f"say which target you mean; there are {', '.join(languages)}")
            return languages[0]
        found = match_language(target, languages)
        if found is None:
            raise UnsupportedPair(f"no model here translates to {target}; there are {', '.join(languages)}")
        return found

    def _share_out(self, detected: Sequence[Detection | None], target: str) -> "list[_Part]":
        places: dict[Route, list[int]] = {}
        for place, detection in enumerate(detected):
            if detection is None or match_language(detection.language, [target]):
                continue
            places.setdefault(self._catalogue.find(detection.language, target), []).append(place)
        return [_Part(route, its_places) for route, its_places in places.items()]

    @staticmethod
    async def _translate_part(asked: TranslationRequest, part: "_Part", feed: TextStream | None) -> TranslationResult:
        its_feed = None if feed is None else feed.view(part.places)
        return await part.route.pipeline.translate(_part(asked, part.places, part.route), its_feed)


@dataclass(frozen=True, slots=True)
class _Part:
    """The texts, by their places, that go one way."""

    route: Route
    places: list[int]


def _part(asked: TranslationRequest, places: Sequence[int], route: Route) -> TranslationRequest:
    options = asked.options
    if isinstance(options.target_prefix, tuple):
        if len(options.target_prefix) != len(asked.texts):
            raise InvalidRequest(
                f"target_prefix has {len(options.target_prefix)} entries for {len(asked.texts)} texts: "
                "give one for each, or a single one for all"
            )
        options = options.with_changes(target_prefix=tuple(options.target_prefix[place] for place in places))
    return replace(
        asked,
        texts=tuple(asked.texts[place] for place in places),
        source=route.source,
        target=route.target,
        options=options,
        size_is_checked=True,
    )


async def _all_or_none(parts: Sequence[Coroutine[None, None, TranslationResult]]) -> list[TranslationResult]:
    """What all of them return. The first error ends the others and is raised."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _merge(
    texts: Sequence[str], places: Sequence[Sequence[int]], results: Sequence[TranslationResult]
) -> TranslationResult:
    """The results of the parts in the order of the texts; a text in no part stands for itself."""
    translations = [Translation(replace_lone_surrogates(text), 0, 0, FinishReason.STOP, math.nan) for text in texts]
    for its_places, result in zip(places, results, strict=True):
        for place, translation in zip(its_places, result.translations, strict=True):
            translations[place] = translation
    return TranslationResult(
        translations,
        _longest([result.phases for result in results]),
        [tokens for result in results for tokens in result.sentence_tokens],
        sum(result.num_splits for result in results),
        next((result.seed for result in results if result.seed is not None), None),
    )


def _longest(phases: Sequence[Phases]) -> Phases:
    """Of parts that ran at the same time."""
    return Phases(*(max((getattr(each, name) for each in phases), default=0.0) for name in _PHASE_NAMES))
