"""Lists of tokens that the rows of an engine may have, in the memory that the decoder graph reads."""

import numpy as np

from server.engine.cache_memory import lazy_zeros
from server.engine.kv_cache import KVCache
from server.engine.listed_tokens import ListedTokens
from server.interface.request import TokenIds


class TokenLists:
    """One list for each request with a shortlist: `lists` [rows, vocabulary], valid up to `lengths` [rows].

    `KVCache.list_of_row` moves with the rows, so all beams of a request share its list.
    """

    def __init__(self, listed_tokens: ListedTokens, num_tokens: int, cache: KVCache) -> None:
        self._listed_tokens = listed_tokens
        self._cache = cache
        self.lists = lazy_zeros((cache.max_rows, num_tokens), np.int32)
        self.lengths = np.zeros(cache.max_rows, np.int32)

    def assign(self, row: int, source: TokenIds) -> None:
        """Restrict a row that has just begun to the tokens that the shortlist has for its source."""
        is_free = np.ones(self.lengths.size, np.bool_)
        used = self._cache.live_lists()
        is_free[used[used >= 0]] = False
        index = int(is_free.argmax())
        tokens = self._listed_tokens.of(source)
        self.lists[index, : tokens.size] = tokens
        self.lengths[index] = tokens.size
        self._cache.list_of_row[row] = index
