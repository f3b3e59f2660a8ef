"""Probabilities of target tokens given a source token, learned from parallel text: IBM model 1.

Brown et al. 1993, "The Mathematics of Statistical Machine Translation". Each target token comes from one token of its
source, or from none; expectation maximisation finds the probabilities. Repetitions within a sentence count once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

Tokens = Sequence[int] | NDArray[np.int32]

_ITERATIONS: Final = 5
_BLOCK_PAIRS: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Block:
    """Combinations of tokens in some pairs: the entry of each in the table, and the target token that it explains."""

    entries: NDArray[np.int32]
    targets: NDArray[np.int32]


def likely_targets(pairs: Sequence[tuple[Tokens, Tokens]], vocab_size: int, num_best: int) -> list[list[int]]:
    """Return the most probable target tokens of each of `vocab_size` source tokens, best first, at most `num_best`.

    Takes about four kilobytes of memory for a pair of sentences of 25 tokens.
    """
    num_targets = 1 + max((int(max(target, default=0)) for _, target in pairs), default=0)
    table, blocks = _combinations(pairs, vocab_size, num_targets)
    sources, targets = np.divmod(table, num_targets)
    probabilities = np.ones(table.size)
    for _ in range(_ITERATIONS):
        counts = np.zeros(table.size)
        for block in blocks:
            shares = probabilities[block.entries]
            shares /= np.bincount(block.targets, shares)[block.targets]
            counts += np.bincount(block.entries, shares, table.size)
        probabilities = counts / np.bincount(sources, counts, vocab_size + 1)[sources]
    best_first = np.lexsort((-probabilities, sources))
    starts = np.searchsorted(sources, np.arange(vocab_size + 1))
    return [
        targets[best_first[start : min(end, start + num_best)]].tolist() for start, end in pairwise(starts.tolist())
    ]


def _combinations(
    pairs: Sequence[tuple[Tokens, Tokens]], vocab_size: int, num_targets: int
) -> tuple[NDArray[np.int64], list[_Block]]:
    """Return all combinations of a source and a target token, as `source * num_targets + target`, and the blocks."""
    found, explained = [], []
    for first in range(0, len(pairs), _BLOCK_PAIRS):
        keys, groups, num_groups = [], [], 0
        for source, target in pairs[first : first + _BLOCK_PAIRS]:
            # The token after the vocabulary stands for none.
            rows = np.array([*set(source), vocab_size], np.int64)
            columns = np.array(sorted(set(target)), np.int64)
            keys.append((rows[:, None] * num_targets + columns).ravel())
            groups.append(np.tile(np.arange(num_groups, num_groups + columns.size, dtype=np.int32), rows.size))
            num_groups += columns.size
        found.append(np.concatenate(keys))
        explained.append(np.concatenate(groups))
    table = np.unique(np.concatenate([np.unique(keys) for keys in found])) if found else np.empty(0, np.int64)
    blocks = [
        _Block(np.searchsorted(table, keys).astype(np.int32), targets)
        for keys, targets in zip(found, explained, strict=True)
    ]
    return table, blocks
