"""Best tokens of whole rows of scores: native if the library was built, otherwise in NumPy.

Both return the same bits.
"""

import ctypes
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import load

_SMALLEST_BLOCK = 16

_library = load("kvasir_top_k")
if _library is not None:
    _library.kvasir_top_k.restype = None
    _library.kvasir_top_k.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 2]


def top_k(scores: NDArray[np.float32], num_best: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the `num_best` best tokens of `scores` [rows, vocab] and their scores, best first; ties by id.

    NaN counts as minus infinity.
    """
    rows, vocab = scores.shape
    num_best = min(num_best, vocab)
    if _library is None:
        return _top_k_in_numpy(scores, num_best)
    scores = np.ascontiguousarray(scores, np.float32)
    tokens, best = np.empty((rows, num_best), np.int64), np.empty((rows, num_best), np.float32)
    _library.kvasir_top_k(scores.ctypes.data, rows, vocab, num_best, tokens.ctypes.data, best.ctypes.data)
    return tokens, best


def _top_k_in_numpy(scores: NDArray[np.float32], num_best: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the best blocks first, as in the graph, then the tokens inside.

    The k best tokens are in the k blocks whose best token is best, so few tokens are sorted.
    """
    rows, vocab = scores.shape
    block_size = max(isqrt(vocab // num_best), _SMALLEST_BLOCK)  # so that equally many blocks and tokens are sorted
    num_blocks = -(-vocab // block_size)
    padded = np.full((rows, num_blocks * block_size), -np.inf, np.float32)
    np.fmax(scores, -np.inf, out=padded[:, :vocab])  # the other number if one is NaN
    blocks = padded.reshape(rows, num_blocks, block_size)
    best_blocks = np.argsort(-blocks.max(axis=2), axis=1, kind="stable")[:, :num_best]
    best_blocks.sort(axis=1)  # so that of equals the smaller id comes first below
    chosen = np.take_along_axis(blocks, best_blocks[..., None], axis=1).reshape(rows, -1)
    # The padding, behind all tokens, is never among the best: equals are in order.
    positions = np.argsort(-chosen, axis=1, kind="stable")[:, :num_best]
    tokens = np.take_along_axis(best_blocks, positions // block_size, axis=1) * block_size + positions % block_size
    return tokens, np.take_along_axis(chosen, positions, axis=1)
