"""Encoder runs: sources of similar length share a run, so that little of it is padding."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from server.interface.request import Pooling, TokenIds

Encoded = TypeVar("Encoded")

# The fixed cost of an encoder run on a CPU, in tokens of the same cost.
_RUN_COSTS_TOKENS = 12


def encoded_in_runs(
    sources: Sequence[TokenIds],
    max_padded_tokens: int,
    encode: Callable[[NDArray[np.int32], NDArray[np.int32]], Sequence[Encoded]],
    run_costs_tokens: int = _RUN_COSTS_TOKENS,
) -> list[Encoded]:
    """Return the encoded sentences in the order of `sources`.

    `encode` receives sentences of similar length: tokens [rows, longest], padded with 0, and their lengths [rows].
    `run_costs_tokens` is the fixed cost of a run, in tokens.
    """
    encoded: dict[int, Encoded] = {}
    for indices in batches([len(source) for source in sources], max_padded_tokens, run_costs_tokens):
        lengths = np.array([len(sources[index]) for index in indices], np.int32)
        tokens = np.zeros((len(indices), int(lengths.max())), np.int32)
        for row, index in enumerate(indices):
            tokens[row, : lengths[row]] = sources[index]
        encoded.update(zip(indices, encode(tokens, lengths), strict=True))
    return [encoded[index] for index in range(len(sources))]


def batches(
    lengths: Sequence[int], max_padded_tokens: int, run_costs_tokens: int = _RUN_COSTS_TOKENS
) -> list[list[int]]:
    """Sort sentences into encoder runs by length, as indices into `lengths`, shortest first.

    A run ends where one more sentence would exceed `max_padded_tokens`, or need more padding than a new run costs.
    """
    runs: list[list[int]] = []
    num_tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        padded = length * (len(runs[-1]) + 1) if runs else 0
        num_tokens += length
        if runs and padded <= max_padded_tokens and padded - num_tokens <= run_costs_tokens:
            runs[-1].append(index)
        else:
            runs.append([index])
            num_tokens = length
    return runs


def embedded_in_runs(
    sources: Sequence[TokenIds],
    poolings: Sequence[Pooling],
    max_padded_tokens: int,
    encode: Callable[[NDArray[np.int32], NDArray[np.int32]], Sequence[NDArray[np.float32]]],
    end_of_sequence: int,
    run_costs_tokens: int = _RUN_COSTS_TOKENS,
) -> list[NDArray[np.float32]]:
    """Return the embedding of each source, from runs of `encode` that return hidden states."""
    hidden = encoded_in_runs(sources, max_padded_tokens, encode, run_costs_tokens)
    return [
        _pooled(states, source, pooling, end_of_sequence)
        for states, source, pooling in zip(hidden, sources, poolings, strict=True)
    ]


def _pooled(
    hidden: NDArray[np.float32], source: TokenIds, pooling: Pooling, end_of_sequence: int
) -> NDArray[np.float32]:
    """Return the embedding [d_model] of a source from its hidden states [source_len, d_model].

    `eos` selects the last end-of-sequence token, or the last token if there is none.
    """
    if pooling == "mean":
        mean: NDArray[np.float32] = np.mean(hidden, axis=0, dtype=np.float32)
        return mean
    ends = np.flatnonzero(source == end_of_sequence)
    index = 0 if pooling == "first" else int(ends[-1]) if ends.size else len(source) - 1
    chosen: NDArray[np.float32] = hidden[index].copy()  # the rest of the run is not kept
    return chosen
