"""Searches in C, which read the candidates of their rows and move the rows."""

from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernels.cache_moves import CacheMoves
from server.engine.decoding.search import Choice
from server.engine.model_runner import Candidates

NEVER_DUE = np.iinfo(np.int32).max


class RowSearch(ABC):
    """A search whose step is one call in C, if all of its requests take the candidates of the graph."""

    def __init__(self, capacity: int) -> None:
        rows = np.arange(capacity)
        self._rows = rows  # kept alive
        self._own_rows = rows.ctypes.data

    def step(self, candidates: Candidates, rows_address: int, moves: CacheMoves | None) -> list[int]:
        """Run one step of every request, move its rows, and return the indices of finished requests, in order.

        `rows_address` is that of the rows [requests, beam_size] in the candidates and in the cache. Rows of finished
        requests are free afterwards.
        """
        addresses = candidates.addresses
        if addresses is not None:
            return self._finished(self._advance(candidates.tokens.shape[1], (*addresses, rows_address), moves))
        tokens, log_probs = _contiguous(candidates.tokens, candidates.log_probs)
        addresses = tokens.ctypes.data, log_probs.ctypes.data
        return self._finished(self._advance(tokens.shape[1], (*addresses, rows_address), moves))

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Choose among the candidates [requests, beam_size, num_candidates], best first."""
        tokens, log_probs = _contiguous(tokens, log_probs)
        self._advance(tokens.shape[2], (tokens.ctypes.data, log_probs.ctypes.data, self._own_rows), None)
        return self._choice()

    @abstractmethod
    def _advance(self, num_candidates: int, addresses: tuple[int, int, int], moves: CacheMoves | None) -> int:
        """Run one step, and return the number of finished requests."""

    @abstractmethod
    def _choice(self) -> Choice:
        """Return the choice of the last step."""

    @abstractmethod
    def _is_finished(self) -> NDArray[np.bool_]:
        """Return which requests [requests] the last step has finished."""

    def _finished(self, num_finished: int) -> list[int]:
        finished: list[int] = self._is_finished().nonzero()[0].tolist() if num_finished else []
        return finished


def _contiguous(
    tokens: NDArray[np.int64], log_probs: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    return np.ascontiguousarray(tokens, np.int64), np.ascontiguousarray(log_probs, np.float32)


@lru_cache(maxsize=64)
def running_powers(length_penalty: float, max_tokens: int) -> NDArray[np.float32]:
    """Return length ** length_penalty for lengths to `max_tokens`, as NumPy computes it for arrays."""
    lengths = np.maximum(np.arange(max_tokens + 1, dtype=np.float32), 1)
    powers: NDArray[np.float32] = lengths ** np.full(max_tokens + 1, length_penalty, np.float32)
    return powers


@lru_cache(maxsize=64)
def held_powers(length_penalty: float, max_tokens: int) -> NDArray[np.float32]:
    """Return length ** length_penalty for lengths to `max_tokens`, as NumPy computes it for single numbers."""
    return np.array([np.float32(max(length, 1)) ** length_penalty for length in range(max_tokens + 1)], np.float32)
