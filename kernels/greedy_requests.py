"""Greedy search of many requests in C. `GreedySearch` in server/engine/decoding defines its results."""

import ctypes

import numpy as np

from kernels.cache_moves import CacheMoves
from kernels.shared_library import SharedArrays, load

_library = load("kvasir_advance_greedy", "kvasir_move_greedy")
if _library is not None:
    _library.kvasir_advance_greedy.restype = ctypes.c_int64
    _library.kvasir_advance_greedy.argtypes = [
        *[ctypes.c_void_p] * 2,
        *[ctypes.c_int64] * 2,
        *[ctypes.c_void_p] * 3,
    ]
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

    def advance(self, num: int, num_candidates: int, addresses: tuple[int, int, int], moves: CacheMoves | None) -> int:
        """Append the first candidate of the first `num` requests, and return how many are finished.

        `addresses` are those of the candidates' tokens, int64, and log-probabilities, float32 [rows, num_candidates],
        and of the requests' rows, int64 [num]. With `moves`, the rows follow in the cache, and those of finished
        requests are free. Raises IndexError if a request has its maximum of tokens.
        """
        assert _library is not None
        cache = None if moves is None else moves.address
        num_finished: int = -1
        if num <= len(self.lengths):
            num_finished = _library.kvasir_advance_greedy(self._address, cache, num, num_candidates, *addresses)
        if num_finished < 0:
            raise IndexError(f"`tokens` has the shape {self.tokens.shape}, and one more was needed")
        return num_finished

    def move(self, source: int, destination: int) -> None:
        """Move a request to another index."""
        assert _library is not None
        _library.kvasir_move_greedy(self._address, source, destination)
