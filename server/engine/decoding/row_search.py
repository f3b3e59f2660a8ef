"""Searches in C, which read the candidates of their rows themselves."""

from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.search import Choice

NEVER_DUE = np.iinfo(np.int32).max


class RowSearch(ABC):
    """A search whose step needs no copy of the candidates of each request."""

    @abstractmethod
    def advance_rows(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32], rows: NDArray[np.intp]) -> Choice:
        """Choose among the candidates [all_rows, num_candidates] of `rows` [requests, beam_size]."""


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
