"""How long sentences are: named distributions of their numbers of words, from `lengths.toml`."""

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
    """Numbers of words and how often each comes; `source` says where they were counted.

    `cumulative[i]` is the share of sentences of at most i + 1 words.
    """

    source: str
    cumulative: tuple[float, ...]

    def num_words(self, chance: float) -> int:
        """The number of words at `chance` of [0, 1): drawn evenly there, lengths come as often as stated."""
        return bisect(self.cumulative, chance) + 1

    def share(self, num_words: int) -> float:
        """The stated share of sentences of that many words."""
        return self.cumulative[num_words - 1] - (self.cumulative[num_words - 2] if num_words > 1 else 0.0)


def length_names() -> list[str]:
    """The names of all distributions."""
    return sorted(_file())


@cache
def length_distribution(name: str, language: str) -> LengthDistribution:
    """A distribution by its name; the same name may have another one for each language.

    Raises `ValueError` for a name or a language that is not there.
    """
    if name not in _file():
        raise ValueError(f"no lengths are called {name}; there are {', '.join(length_names())}")
    table = _file()[name]
    counts = table.get(language, table.get(_ANY_LANGUAGE))
    source = table["source"]
    if not isinstance(counts, list):
        known = ", ".join(sorted(set(table) - {"source"}))
        raise ValueError(f"lengths {name} are known in {known}, and not in {language}")
    assert isinstance(source, str)
    # The last is exactly 1, whatever the rounding before it.
    total = sum(counts)
    return LengthDistribution(source, tuple(count / total for count in accumulate(counts)))


@cache
def _file() -> dict[str, dict[str, str | list[int]]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
