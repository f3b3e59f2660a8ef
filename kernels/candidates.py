"""Tokens in C: the best of whole rows, the candidates of a step, and the union of the lists of a source.

The first two are also in NumPy and return the same bits; `ListedTokens` in server/engine defines the third. In NumPy
the candidates of a step take 10 to 40 us more: the graph has evicted NumPy's code and data.
"""

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import INT64, POINTER, SharedArrays, load

_library = load(
    kvasir_top_k=(None, POINTER, *[INT64] * 3, *[POINTER] * 2),
    kvasir_step_candidates=(INT64, *[POINTER] * 4, *[INT64] * 2),
    kvasir_list_tokens=(INT64, *[POINTER] * 2, INT64, POINTER),
)

IS_AVAILABLE = _library is not None
"""Whether the library was built."""

_SMALLEST_BLOCK = 16


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


class StepCandidates:
    """`logits` [rows, num_candidates], best first, `normalizers` [rows] and `lengths` [rows] of the past.

    The arrays do not move.
    """

    def __init__(
        self,
        logits: NDArray[np.float32],
        normalizers: NDArray[np.float32],
        lengths: NDArray[np.int32],
        *,
        with_scores: bool,
    ) -> None:
        assert all(array.flags.c_contiguous for array in (logits, normalizers, lengths)), "they are read by address"
        self.log_probs = np.full(logits.shape, np.nan, np.float32)
        """The differences of logits and normalizers; NaN before the first update, and always without scores."""
        self._logits, self._normalizers, self._lengths = logits, normalizers[:, None], lengths
        self._with_scores = with_scores
        to = self.log_probs.ctypes.data if with_scores else None
        self._arguments = (logits.ctypes.data, normalizers.ctypes.data, to, lengths.ctypes.data, *logits.shape)

    def update(self) -> int:
        """Compute the log-probabilities of a step and count it in the lengths.

        Return the number of rows whose best logit is not finite.
        """
        if _library is not None:
            num_not_finite: int = _library.kvasir_step_candidates(*self._arguments)
            return num_not_finite
        self._lengths += 1
        if self._with_scores:
            np.subtract(self._logits, self._normalizers, out=self.log_probs)
        return int(np.count_nonzero(~np.isfinite(self._logits[:, :1])))


class TokenUnion:
    """Lists of tokens: that of token `i` is `tokens[offsets[i] : offsets[i + 1]]`.

    A union has the tokens of `always`, those of the lists of a source, with `adds_source` the source's own tokens, and
    the smallest others from `num_first` on, so that their number is a multiple of `multiple` and at least `min_tokens`.
    All tokens are below `num_tokens`, and `always` has all below `num_first`.
    """

    def __init__(
        self,
        offsets: NDArray[np.int64],
        tokens: NDArray[np.int32],
        always: NDArray[np.int32],
        num_first: int,
        num_tokens: int,
        multiple: int,
        min_tokens: int,
        *,
        adds_source: bool,
    ) -> None:
        numbers = (offsets.size - 1, always.size, num_first, num_tokens, multiple, min_tokens, adds_source)
        self._struct = SharedArrays(numbers, (offsets, tokens, always))
        self._longest = int(np.diff(offsets).max(initial=0)) + adds_source
        self._num_others, self._num_tokens = always.size + multiple + min_tokens, num_tokens

    def of(self, source: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the union for a source [source_len], in ascending order."""
        assert _library is not None
        source = np.ascontiguousarray(source, np.int32)
        found = np.empty(min(source.size * self._longest + self._num_others, self._num_tokens), np.int32)
        num_found = _library.kvasir_list_tokens(
            self._struct.address, source.ctypes.data, source.size, found.ctypes.data
        )
        return found[:num_found]
