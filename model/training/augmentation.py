"""Additional pairs of a corpus, made of its own: with copied items, with noise, joined, and short ones again."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

from model.training.copied_items import ItemGenerator, with_other_names, with_other_numbers
from model.training.noise import noisy
from model.training.translation_memory import Languages, Pair

_MAX_SHORT_WORDS = 2
_MAX_JOINED = 4
_REAL_CONTEXT = 0.6


@dataclass(frozen=True, slots=True)
class AugmentationSettings:
    """Expected number of additional pairs for each pair that an epoch takes, by kind.

    `short` counts for pairs of at most two words on each side only.
    """

    copied: float = 0.0
    noisy: float = 0.0
    joined: float = 0.0
    short: float = 0.0


class Augmentation:
    """Collector of additional pairs. It draws from pairs in the order of reading; equal seeds give equal pairs."""

    def __init__(self, settings: AugmentationSettings, languages: Languages, seed: int) -> None:
        self._settings = settings
        self._random = Random(f"augmentation {seed}")
        self._items = ItemGenerator(languages, self._random)
        self._previous: deque[Pair] = deque(maxlen=_MAX_JOINED - 1)

    def observed(self, pairs: Iterable[Pair], share: float, extra: list[Pair]) -> Iterator[Pair]:
        """Yield the pairs of one file, of which an epoch takes this share, and append additional ones to `extra`."""
        self._previous.clear()  # pairs are joined with those of their own file
        for pair in pairs:
            extra += self._additional(pair, share)
            yield pair

    def _additional(self, pair: Pair, share: float) -> list[Pair]:
        settings = self._settings
        extra = [self._copied(pair) for _ in range(self._count(settings.copied * share))]
        extra += [noisy(pair, self._random) for _ in range(self._count(settings.noisy * share))]
        if self._previous:
            extra += [self._joined(pair) for _ in range(self._count(settings.joined * share))]
        if max(len(side.split()) for side in pair) <= _MAX_SHORT_WORDS:
            extra += [pair] * self._count(settings.short * share)
        self._previous.append(pair)
        return extra

    def _count(self, expected: float) -> int:
        return int(expected) + (self._random.random() < expected % 1)

    def _copied(self, pair: Pair) -> Pair:
        # Items in real sentences teach most, but most pairs have none.
        for change in self._random.sample((with_other_numbers, with_other_names), 2):
            other = change(pair, self._random)
            if other is not None and self._random.random() < _REAL_CONTEXT:
                return other
        return self._items.pair(pair)

    def _joined(self, pair: Pair) -> Pair:
        count = self._random.randrange(1, len(self._previous) + 1)
        pairs = [*list(self._previous)[-count:], pair]
        return " ".join(source for source, _ in pairs), " ".join(target for _, target in pairs)
