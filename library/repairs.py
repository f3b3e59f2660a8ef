"""Gain of each repair of a bundle for one pair of languages, and its cost in decoding.

Sentences are translated without and with it. Those that it changed are compared by their chrF with the references.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bundle.loading import Bundle
from bundle.manifest import BundleConfig, Repair
from model.training.parallel_text import Pair
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, Request
from server.text.digits import compare
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.quality import pair_name
from server.translation.types import Translation, TranslationRequest
from server.workers.pool import EnginePool, PoolOptions

REPAIRS: Final[Sequence[Repair]] = ("numbers", "parts", "capitals")
_MAX_SENTENCES: Final = 3000  # that a repair is measured with
_MAX_CAPITALS: Final = 1000
_MIN_RATIO: Final = 1.5  # of the better sentences to the worse ones
_MAX_REQUESTS: Final = 0.05  # more than without the repair
_DEVIATIONS: Final = 2  # standard deviations of their difference by chance
_NO_QUEUE_LIMIT: Final = 1 << 20

Score = Callable[[str, str], float]  # chrF of a translation and its reference


@dataclass(frozen=True, slots=True)
class Run:
    """Translations, and their cost: requests to the engine, and the rows of all decoder steps together."""

    translations: list[Translation]
    num_requests: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class RepairFigures:
    """Effect of a repair on `num_sentences`: `gain` is the mean difference in chrF of those that it changed.

    `kept_numbers` are those of the sources that translations have without and with it. `extra_requests` and
    `extra_rows` are shares of the decoding without it.
    """

    repair: Repair
    num_sentences: int
    num_changed: int
    num_better: int
    num_worse: int
    gain: float
    num_numbers: int
    kept_numbers: tuple[int, int]
    extra_requests: float
    extra_rows: float

    @property
    def is_gain(self) -> bool:
        """Whether a bundle should have the repair.

        That of numbers keeps more of them, and is not worse by more than chance explains: chrF hardly sees a number.
        Others cost more decoding, at most a twentieth of the requests: three sentences are better for two that are
        worse, more than chance explains, and chrF rises.
        """
        chance = _DEVIATIONS * math.sqrt(self.num_better + self.num_worse)
        if self.repair == "numbers":
            return self.kept_numbers[1] > self.kept_numbers[0] and self.num_worse - self.num_better <= chance
        margin = max(chance, (_MIN_RATIO - 1) * self.num_worse, 1)
        return self.num_better - self.num_worse >= margin and self.gain > 0 and self.extra_requests <= _MAX_REQUESTS


class Decoder:
    """Translates between two languages with one engine, and counts what it decodes."""

    def __init__(self, bundle: Bundle, beam_size: int) -> None:
        self._rows = _Rows()
        options = PoolOptions(max_waiting=_NO_QUEUE_LIMIT, observe=self._rows)
        self.pool: EnginePool = _CountingPool.open(bundle, options)
        self._bundle = bundle
        self._options = DecodingOptions(beam_size=beam_size, return_scores=True)

    def run(self, texts: Sequence[str], languages: tuple[str, str], config: BundleConfig) -> Run:
        """Translate texts as the bundle would with another manifest."""
        assert isinstance(self.pool, _CountingPool)
        requests, rows = self.pool.num_requests, self._rows.number
        self.pool.bundle = replace(self._bundle, config=config)
        request = TranslationRequest(tuple(texts), *languages, self._options, bypass_cache=True)
        translations = asyncio.run(Pipeline(self.pool, TranslationLimits()).translate(request)).translations
        return Run(translations, self.pool.num_requests - requests, self._rows.number - rows)

    def close(self) -> None:
        """Stop the engine."""
        self.pool.close()


def repair_figures(
    decoder: Decoder, config: BundleConfig, languages: tuple[str, str], pairs: Sequence[Pair], first: Run, score: Score
) -> list[RepairFigures]:
    """Return the figures of all repairs for a bundle. `first` has the translations of these pairs without any.

    Of many pairs some from all over the data are used. Capitals are measured with sources and references in capitals.
    """
    sample = _sample(pairs, _MAX_SENTENCES)
    capitals = [(source.upper(), target.upper()) for source, target in _sample(pairs, _MAX_CAPITALS)]
    figures = []
    for repair in REPAIRS:
        used = capitals if repair == "capitals" else sample
        texts = [source for source, _ in used]
        before = first if used is pairs else decoder.run(texts, languages, config)
        repairs = {pair_name(*languages): (repair,)}
        after = decoder.run(texts, languages, config.model_copy(update={"repairs": repairs}))
        figures.append(_figures(repair, languages, used, before, after, score))
    return figures


def _sample(pairs: Sequence[Pair], limit: int) -> Sequence[Pair]:
    return pairs if len(pairs) <= limit else pairs[:: -(-len(pairs) // limit)]


def _figures(
    repair: Repair, languages: tuple[str, str], pairs: Sequence[Pair], before: Run, after: Run, score: Score
) -> RepairFigures:
    gains = [
        score(new.text, reference) - score(old.text, reference)
        for old, new, (_, reference) in zip(before.translations, after.translations, pairs, strict=True)
        if old.text != new.text
    ]
    num_numbers = _num_lost([(source, "") for source, _ in pairs], languages)
    lost = [
        _num_lost([(source, done.text) for (source, _), done in zip(pairs, run.translations, strict=True)], languages)
        for run in (before, after)
    ]
    return RepairFigures(
        repair,
        len(pairs),
        len(gains),
        sum(gain > 0 for gain in gains),
        sum(gain < 0 for gain in gains),
        math.fsum(gains) / max(len(gains), 1),
        num_numbers,
        (num_numbers - lost[0], num_numbers - lost[1]),
        after.num_requests / max(before.num_requests, 1) - 1,
        after.num_rows / max(before.num_rows, 1) - 1,
    )


def _num_lost(texts: Sequence[tuple[str, str]], languages: tuple[str, str]) -> int:
    """Return how many numbers of sources are missing in their translations."""
    return sum(len(compare(source, translation, *languages).missing) for source, translation in texts)


class _Rows:
    """Observer of an engine that counts the rows of all steps together."""

    number = 0

    def step(self, rows: int, seconds: float) -> None:
        """Count a decoder step."""
        self.number += rows


class _CountingPool(EnginePool):
    """A pool that counts its requests."""

    num_requests = 0

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Count the requests, and decode them."""
        self.num_requests += len(requests)
        return await super().generate(requests)
