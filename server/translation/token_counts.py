"""Numbers of tokens of decoded sentences, in the size of a table: a call may have 50,000 sentences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """The number of sentences with each number of source tokens, and with each number of target tokens."""

    source: Mapping[int, int]
    target: Mapping[int, int]

    @classmethod
    def of(cls, sentences: Iterable[tuple[int, int]]) -> Self:
        """Count sentences by their numbers of source and target tokens."""
        source: dict[int, int] = {}
        target: dict[int, int] = {}
        for num_source, num_target in sentences:
            source[num_source] = source.get(num_source, 0) + 1
            target[num_target] = target.get(num_target, 0) + 1
        return cls(source, target)

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        """Return the counts of the sentences of both."""
        return TokenCounts(_sum(self.source, other.source), _sum(self.target, other.target))

    @property
    def num_sentences(self) -> int:
        """The number of sentences."""
        return sum(self.source.values())

    @property
    def num_source_tokens(self) -> int:
        """The source tokens of all sentences."""
        return sum([length * number for length, number in self.source.items()])

    @property
    def num_target_tokens(self) -> int:
        """The target tokens of all sentences."""
        return sum([length * number for length, number in self.target.items()])


def _sum(first: Mapping[int, int], second: Mapping[int, int]) -> dict[int, int]:
    return {length: first.get(length, 0) + second.get(length, 0) for length in {**first, **second}}
