"""Encoder runs: sources of similar length share one, so that little of it is padding."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from server.engine.kv_cache import CrossKeysValues
from server.interface.request import TokenIds

# An encoder run costs about as much as so many tokens, however few it has.
_RUN_COSTS_TOKENS = 32


def encoded_in_runs(
    sources: Sequence[TokenIds],
    max_padded_tokens: int,
    encode: Callable[[NDArray[np.int32], NDArray[np.int32]], Sequence[CrossKeysValues]],
) -> list[CrossKeysValues]:
    """What `encode` makes of each sentence, in their order.

    It is given sentences of like length together: tokens [rows, longest], padded with 0, and their lengths [rows].
    """
    encoded: dict[int, CrossKeysValues] = {}
    for places in batches([len(source) for source in sources], max_padded_tokens):
        lengths = np.array([len(sources[place]) for place in places], np.int32)
        tokens = np.zeros((len(places), int(lengths.max())), np.int32)
        for row, place in enumerate(places):
            tokens[row, : lengths[row]] = sources[place]
        encoded.update(zip(places, encode(tokens, lengths), strict=True))
    return [encoded[place] for place in range(len(sources))]


def batches(lengths: Sequence[int], max_padded_tokens: int) -> list[list[int]]:
    """Sort sentences into encoder runs by length: places in `lengths`, shortest first.

    A run ends where one more sentence would make it too large, or would cost more padding than another run does.
    """
    runs: list[list[int]] = []
    num_tokens = 0
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[place]
        padded = length * (len(runs[-1]) + 1) if runs else 0
        num_tokens += length
        if runs and padded <= max_padded_tokens and padded - num_tokens <= _RUN_COSTS_TOKENS:
            runs[-1].append(place)
        else:
            runs.append([place])
            num_tokens = length
    return runs
