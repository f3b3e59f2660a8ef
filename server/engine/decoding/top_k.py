"""The best tokens of whole rows of scores, found as the graph finds them: the best blocks first, then inside those."""

from math import isqrt

import numpy as np
from numpy.typing import NDArray

_SMALLEST_BLOCK = 16


def top_k(scores: NDArray[np.float32], num_best: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The `num_best` best tokens of `scores` [rows, vocab] and their scores, best first; of equals the smaller id.

    The k best tokens lie in the k blocks of neighbours whose best token is best, so few of them are ever sorted.
    """
    rows, vocab = scores.shape
    num_best = min(num_best, vocab)
    block_size = max(isqrt(vocab // num_best), _SMALLEST_BLOCK)  # so that as many blocks are sorted as tokens
    num_blocks = -(-vocab // block_size)
    padded = np.full((rows, num_blocks * block_size), -np.inf, np.float32)
    padded[:, :vocab] = scores
    blocks = padded.reshape(rows, num_blocks, block_size)
    best_blocks = np.argsort(-blocks.max(axis=2), axis=1, kind="stable")[:, :num_best]
    best_blocks.sort(axis=1)  # so that of equals the smaller id comes first below
    chosen = np.take_along_axis(blocks, best_blocks[..., None], axis=1).reshape(rows, -1)
    places = np.argsort(-chosen, axis=1, kind="stable")[:, :num_best]
    tokens = np.take_along_axis(best_blocks, places // block_size, axis=1) * block_size + places % block_size
    # Where nothing is left but what fills up the last block, any token will do: its score says that it cannot be.
    return np.minimum(tokens, vocab - 1), np.take_along_axis(chosen, places, axis=1)
