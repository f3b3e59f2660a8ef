"""Greedy search of many requests in C. `GreedySearch` in server/engine/decoding defines its results."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import SharedArrays, load

_library = load("kvasir_advance_greedy", "kvasir_move_greedy")
if _library is not None:
    _library.kvasir_advance_greedy.restype = ctypes.c_int64
    _library.kvasir_advance_greedy.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 3]
    _library.kvasir_move_greedy.restype = None
    _library.kvasir_move_greedy.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 2]

IS_AVAILABLE = _library is not None
"""Whether the library was built."""


class GreedyRequests:
    """Up to `capacity` requests, in arrays with one index each; only the first `num` of them count.

    `tokens` [capacity, max_tokens] are those so far, `lengths` of them and at most `max_lengths`. A request whose
    sequence has more than `loop_limits` repetitions is marked in `has_looped`; the next check is at length `loop_due`.
    `chosen` and `finished` are the results of the last step.
    """

    def __init__(self, capacity: int, max_tokens: int, end_token: int, forced_end: bool) -> None:
        self.tokens = np.zeros((capacity, max_tokens), np.int32)
        self.lengths = np.zeros(capacity, np.int32)
        self.max_lengths = np.zeros(capacity, np.int32)
        self.log_probs = np.zeros(capacity, np.float64)
        self.loop_limits = np.zeros(capacity, np.int32)
        self.loop_due = np.zeros(capacity, np.int32)
        self.has_looped = np.zeros(capacity, np.bool_)
        self.finished = np.zeros(capacity, np.bool_)
        self.chosen = np.zeros((capacity, 1), np.int32)
        arrays = (
            *(self.tokens, self.lengths, self.max_lengths, self.log_probs, self.loop_limits, self.loop_due),
            *(self.has_looped, self.finished, self.chosen),
        )
        self._struct = SharedArrays((max_tokens, end_token, forced_end), arrays)
        self._address = self._struct.address

    def advance(
        self, num: int, candidates: NDArray[np.int64], log_probs: NDArray[np.float32], rows: NDArray[np.intp]
    ) -> None:
        """Append the first candidate of each request. Request i has row rows[i] of `candidates` [rows, candidates].

        Raises IndexError if a request has its maximum of tokens. `rows` must be C-contiguous.
        """
        assert _library is not None
        candidates = np.ascontiguousarray(candidates, np.int64)
        log_probs = np.ascontiguousarray(log_probs, np.float32)
        if (
            num > len(self.lengths)
            or _library.kvasir_advance_greedy(
                self._address, num, candidates.shape[1], candidates.ctypes.data, log_probs.ctypes.data, rows.ctypes.data
            )
            < 0
        ):
            raise IndexError(f"`tokens` has the shape {self.tokens.shape}, and one more was needed")

    def move(self, source: int, destination: int) -> None:
        """Move a request to another index."""
        assert _library is not None
        _library.kvasir_move_greedy(self._address, source, destination)
