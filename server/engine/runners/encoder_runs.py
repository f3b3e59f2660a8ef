"""Encoder runs: sources of similar length share a run, so that little of it is padding."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from server.engine.kv_cache import CrossKeysValues
from server.interface.request import TokenIds

# The fixed cost of an encoder run, in tokens of the same cost.
_RUN_COSTS_TOKENS = 32


def encoded_in_runs(
    sources: Sequence[TokenIds],
    max_padded_tokens: int,
    encode: Callable[[NDArray[np.int32], NDArray[np.int32]], Sequence[CrossKeysValues]],
) -> list[CrossKeysValues]:
    """Return the encoded sentences in the order of `sources`.

    `encode` receives sentences of similar length: tokens [rows, longest], padded with 0, and their lengths [rows].
    """
    encoded: dict[int, CrossKeysValues] = {}
    for indices in batches([len(source) for source in sources], max_padded_tokens):
        lengths = np.array([len(sources[index]) for index in indices], np.int32)
        tokens = np.zeros((len(indices), int(lengths.max())), np.int32)
        for row, index in enumerate(indices):
            tokens[row, : lengths[row]] = sources[index]
        encoded.update(zip(indices, encode(tokens, lengths), strict=True))
    return [encoded[index] for index in range(len(sources))]


def batches(lengths: Sequence[int], max_padded_tokens: int) -> list[list[int]]:
    """Sort sentences into encoder runs by length, as indices into `lengths`, shortest first.

    A run ends where one more sentence would exceed `max_padded_tokens`, or need more padding than a new run costs.
    """
    runs: list[list[int]] = []
    num_tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        padded = length * (len(runs[-1]) + 1) if runs else 0
        num_tokens += length
        if runs and padded <= max_padded_tokens and padded - num_tokens <= _RUN_COSTS_TOKENS:
            runs[-1].append(index)
        else:
            runs.append([index])
            num_tokens = length
    return runs
