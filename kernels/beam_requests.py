"""Beam search of many requests in C, with the hypotheses that they hold.

`BeamSearch` in server/engine/decoding defines its results.
"""

import ctypes

import numpy as np

from kernels.cache_moves import CacheMoves
from kernels.shared_library import SharedArrays, load

_TOO_FEW_ROWS = -2

_library = load("kvasir_advance_beam_requests", "kvasir_move_beam_request")
if _library is not None:
    _library.kvasir_advance_beam_requests.restype = ctypes.c_int64
    _library.kvasir_advance_beam_requests.argtypes = [
        *[ctypes.c_void_p] * 2,
        *[ctypes.c_int64] * 3,
        *[ctypes.c_void_p] * 3,
    ]
    _library.kvasir_move_beam_request.restype = None
    _library.kvasir_move_beam_request.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 2]

NEVER = np.float32(-1e9)
"""The sum of an unused beam."""

IS_AVAILABLE = _library is not None
"""Whether the library was built."""


class BeamRequests:
    """Up to `capacity` requests with `beam_size` beams each, in arrays with one index a request.

    Of the running beams: `tokens` [capacity, beam_size, max_tokens], `sums` [capacity, beam_size] of log-probabilities,
    `lengths` [capacity] in tokens, at most `max_lengths`. `common_before` [capacity, beam_size, beam_size] is the
    number of tokens that two beams had in common before the last step; `chosen`, `parents` [capacity, beam_size] and
    `finished` [capacity] are its results.

    A request holds its best `beam_size` complete hypotheses, `num_held` so far, best first: `held_scores`, `held_sums`,
    `held_lengths`, `held_looped` [capacity, beam_size] and `held_tokens` [capacity, beam_size, max_tokens]. A score is
    a sum divided by `held_powers` [capacity, max_tokens + 1] of the length; running beams have `running_powers`.
    """

    def __init__(self, capacity: int, beam_size: int, max_tokens: int, end_token: int, forced_end: bool) -> None:
        self.sums = np.zeros((capacity, beam_size), np.float32)
        self.tokens = np.zeros((capacity, beam_size, max_tokens), np.int32)
        self.common = np.zeros((capacity, beam_size, beam_size), np.int32)
        self.common_before = np.zeros((capacity, beam_size, beam_size), np.int32)
        self.lengths = np.zeros(capacity, np.int32)
        self.max_lengths = np.zeros(capacity, np.int32)
        self.early_stopping = np.zeros(capacity, np.bool_)
        self.running_powers = np.ones((capacity, max_tokens + 1), np.float32)
        self.held_powers = np.ones((capacity, max_tokens + 1), np.float32)
        self.loop_limits = np.zeros(capacity, np.int32)
        self.loop_due = np.zeros(capacity, np.int32)
        self.num_held = np.zeros(capacity, np.int32)
        self.held_scores = np.zeros((capacity, beam_size), np.float32)
        self.held_sums = np.zeros((capacity, beam_size), np.float32)
        self.held_lengths = np.zeros((capacity, beam_size), np.int32)
        self.held_looped = np.zeros((capacity, beam_size), np.bool_)
        self.held_tokens = np.zeros((capacity, beam_size, max_tokens), np.int32)
        self.chosen = np.zeros((capacity, beam_size), np.int32)
        self.parents = np.zeros((capacity, beam_size), np.intp)
        self.finished = np.zeros(capacity, np.bool_)
        arrays = (
            *(self.sums, self.tokens, self.common, self.common_before, self.lengths, self.max_lengths),
            *(self.early_stopping, self.running_powers, self.held_powers, self.loop_limits, self.loop_due),
            *(self.num_held, self.held_scores, self.held_sums, self.held_lengths),
            *(self.held_looped, self.held_tokens, self.chosen, self.parents, self.finished),
            np.zeros((beam_size, max_tokens), np.int32),  # the beams of one request while they are reordered
        )
        self._struct = SharedArrays((beam_size, max_tokens, end_token, forced_end), arrays)
        self._address = self._struct.address

    def advance(
        self,
        num: int,
        num_candidates: int,
        num_ranked: int,
        addresses: tuple[int, int, int],
        moves: CacheMoves | None,
    ) -> int:
        """Run a step of the first `num` requests, and return how many are finished.

        `addresses` are those of the candidates' tokens, int64, and log-probabilities, float32 [rows, num_candidates],
        of which the first `num_ranked` count, and of the beams' rows, int64 [num, beam_size]. With `moves`, the rows
        follow in the cache, and those of finished requests are free. Raises IndexError if a request has its maximum of
        tokens, or if the cache has too few rows.
        """
        assert _library is not None
        cache = None if moves is None else moves.address
        num_finished: int = -1
        if num <= len(self.lengths):
            num_finished = _library.kvasir_advance_beam_requests(
                self._address, cache, num, num_candidates, min(num_ranked, num_candidates), *addresses
            )
        if num_finished == _TOO_FEW_ROWS:
            raise IndexError("the cache has too few free rows for the beams of the requests")
        if num_finished < 0:
            raise IndexError(f"`tokens` has the shape {self.tokens.shape}, and one more was needed")
        return num_finished

    def move(self, source: int, destination: int) -> None:
        """Move a request to another index."""
        assert _library is not None
        _library.kvasir_move_beam_request(self._address, source, destination)
