"""The best tokens of whole rows of scores, found as the graph finds them: the best blocks first, then inside those."""

import numpy as np
from numpy.typing import NDArray

_BLOCK_SIZE = 256


def top_k(scores: NDArray[np.float32], num_best: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The `num_best` best tokens of `scores` [rows, vocab] and their scores, best first; of equals the smaller id.

    The k best tokens lie in the k blocks of neighbours whose best token is best, so few of them are ever sorted.
    """
    rows, vocab = scores.shape
    num_best = min(num_best, vocab)
    num_blocks = -(-vocab // _BLOCK_SIZE)
    padded = np.full((rows, num_blocks * _BLOCK_SIZE), -np.inf, np.float32)
    padded[:, :vocab] = scores
    blocks = padded.reshape(rows, num_blocks, _BLOCK_SIZE)
    best_blocks = np.argsort(-blocks.max(axis=2), axis=1, kind="stable")[:, :num_best]
    best_blocks.sort(axis=1)  # so that of equals the smaller id comes first below
    chosen = np.take_along_axis(blocks, best_blocks[..., None], axis=1).reshape(rows, -1)
    places = np.argsort(-chosen, axis=1, kind="stable")[:, :num_best]
    tokens = np.take_along_axis(best_blocks, places // _BLOCK_SIZE, axis=1) * _BLOCK_SIZE + places % _BLOCK_SIZE
    # Where nothing is left but what fills up the last block, any token will do: its score says that it cannot be.
    return np.minimum(tokens, vocab - 1), np.take_along_axis(chosen, places, axis=1)
