"""Batches of sentence pairs of similar length within a token budget."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def epoch_indices(sizes: Sequence[int], shares: Sequence[float], seed: int, epoch: int) -> Indices:
    """Return the pairs of one epoch in random order. Files of `sizes` pairs are numbered consecutively.

    A share of 1 takes each pair of the file once, 2 twice, and 0.2 a fifth, a different one in each epoch.
    """
    random = np.random.default_rng((seed, epoch, 0))
    chosen: list[Indices] = []
    first = 0
    for size, share in zip(sizes, shares, strict=True):
        everything = np.arange(first, first + size)
        whole, part = whole_and_part(size, share)
        chosen += [everything] * whole
        if part:
            chosen.append(random.permutation(everything)[:part])
        first += size
    return random.permutation(np.concatenate(chosen))


def whole_and_part(size: int, share: float) -> tuple[int, int]:
    """Return how often an epoch takes all of `size` pairs, and the number of pairs it takes in addition."""
    return int(share), round((share - int(share)) * size)


def token_batches(
    indices: Indices, source_lengths: Indices, target_lengths: Indices, max_tokens: int, seed: int, epoch: int
) -> list[Indices]:
    """Return `indices` in batches, in random order, each of at most `max_tokens` including the padding of both sides.

    A longer pair is a batch of its own. Lengths are indexed by the values of `indices`.
    """
    # Stable: pairs of equal lengths stay in the random order of `indices`, so that batches differ between epochs.
    order = indices[np.lexsort((source_lengths[indices], target_lengths[indices]))]
    batches: list[Indices] = []
    start = longest_source = longest_target = 0
    for end, index in enumerate(order):
        longest_source = max(longest_source, int(source_lengths[index]))
        longest_target = max(longest_target, int(target_lengths[index]))
        if end > start and (end - start + 1) * (longest_source + longest_target) > max_tokens:
            batches.append(order[start:end])
            start = end
            longest_source, longest_target = int(source_lengths[index]), int(target_lengths[index])
    if start < len(order):
        batches.append(order[start:])
    shuffled = np.random.default_rng((seed, epoch, 1)).permutation(len(batches))
    return [batches[int(index)] for index in shuffled]
