"""Named distributions of sentence lengths in words, from `lengths.toml`."""

import tomllib
from bisect import bisect
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

FILE = Path(__file__).parent / "lengths.toml"

_ANY_LANGUAGE = "any"


@dataclass(frozen=True, slots=True)
class LengthDistribution:
    """A distribution of numbers of words; `source` names the counted texts.

    `cumulative[i]` is the share of sentences with at most i + 1 words.
    """

    source: str
    cumulative: tuple[float, ...]

    def num_words(self, chance: float) -> int:
        """Return the number of words at the quantile `chance` in [0, 1)."""
        return bisect(self.cumulative, chance) + 1

    def share(self, num_words: int) -> float:
        """Return the share of sentences with that many words."""
        return self.cumulative[num_words - 1] - (self.cumulative[num_words - 2] if num_words > 1 else 0.0)


def length_names() -> list[str]:
    """Return the names of all distributions."""
    return sorted(_file())


@cache
def length_distribution(name: str, language: str) -> LengthDistribution:
    """Return the distribution with that name; it may depend on the language.

    Raises `ValueError` for an unknown name or language.
    """
    if name not in _file():
        raise ValueError(f"unknown lengths {name}; available: {', '.join(length_names())}")
    table = _file()[name]
    counts = table.get(language, table.get(_ANY_LANGUAGE))
    source = table["source"]
    if not isinstance(counts, list):
        known = ", ".join(sorted(set(table) - {"source"}))
        raise ValueError(f"lengths {name} have no language {language}; available: {known}")
    assert isinstance(source, str)
    # The last is exactly 1, despite rounding.
    total = sum(counts)
    return LengthDistribution(source, tuple(count / total for count in accumulate(counts)))


@cache
def _file() -> dict[str, dict[str, str | list[int]]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
