"""Best tokens of whole rows of scores, found like in the graph: the best blocks first, then the tokens inside."""

from math import isqrt

import numpy as np
from numpy.typing import NDArray

_SMALLEST_BLOCK = 16


def top_k(scores: NDArray[np.float32], num_best: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the `num_best` best tokens of `scores` [rows, vocab] and their scores, best first; ties by id.

    The k best tokens are in the k blocks whose best token is best, so few tokens are sorted.
    """
    rows, vocab = scores.shape
    num_best = min(num_best, vocab)
    block_size = max(isqrt(vocab // num_best), _SMALLEST_BLOCK)  # so that equally many blocks and tokens are sorted
    num_blocks = -(-vocab // block_size)
    padded = np.full((rows, num_blocks * block_size), -np.inf, np.float32)
    padded[:, :vocab] = scores
    blocks = padded.reshape(rows, num_blocks, block_size)
    best_blocks = np.argsort(-blocks.max(axis=2), axis=1, kind="stable")[:, :num_best]
    best_blocks.sort(axis=1)  # so that of equals the smaller id comes first below
    chosen = np.take_along_axis(blocks, best_blocks[..., None], axis=1).reshape(rows, -1)
    positions = np.argsort(-chosen, axis=1, kind="stable")[:, :num_best]
    tokens = np.take_along_axis(best_blocks, positions // block_size, axis=1) * block_size + positions % block_size
    # Positions in the padding of the last block become any token: their score is -inf.
    return np.minimum(tokens, vocab - 1), np.take_along_axis(chosen, positions, axis=1)
