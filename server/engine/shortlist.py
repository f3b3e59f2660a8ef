"""Shortlists: the target tokens that a translation may have, and the lists of them that the decoder graph reads."""

from collections.abc import Sequence
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from bundle.loading import Bundle
from bundle.manifest import TARGET_VOCABULARY_FILE
from bundle.shortlist import Shortlist, read_shortlist
from bundle.tensors import SHORTLIST_FILE
from kernels.candidates import IS_AVAILABLE, TokenUnion
from server.engine.kv_cache import KVCache, lazy_zeros
from server.interface.request import TokenIds

_MULTIPLE: Final = 8
# The widest beam search reads 16 candidates of a row.
_MIN_TOKENS: Final = 32


class ListedTokens:
    """Target tokens that the translation of a source may have.

    As in Marian, the tokens of the source themselves are among them if it shares its vocabulary with the target
    (`is_shared`), and further ones from the beginning of the vocabulary make their number a multiple of eight. `always`
    are tokens of every list: the end of the sequence, and the suppressed ones, which count in scores.
    """

    def __init__(self, shortlist: Shortlist, num_tokens: int, always: Sequence[int], *, is_shared: bool) -> None:
        self._offsets = shortlist.offsets.astype(np.int64)
        self._tokens = shortlist.tokens.astype(np.int32)
        self._num_listed = len(self._offsets) - 1
        self._num_first = min(shortlist.num_first, num_tokens)
        self._num_tokens = num_tokens
        self._always = np.union1d(np.arange(self._num_first), always).astype(np.int32)
        self._is_shared = is_shared
        self._union = self._open_union() if IS_AVAILABLE else None

    @classmethod
    def open(cls, bundle: Bundle) -> Self:
        """Return the lists of a bundle with a shortlist. Raises `BundleError` if the file does not fit the model."""
        config = bundle.config
        # The digest of the file was compared when the bundle was loaded.
        shortlist = read_shortlist(bundle.file(SHORTLIST_FILE), config.shapes, verify_checksum=False)
        special = config.special_tokens
        return cls(
            shortlist,
            config.shapes.target_vocab_size,
            (special.end_of_sequence, *special.suppressed),
            is_shared=TARGET_VOCABULARY_FILE not in config.files,
        )

    def _open_union(self) -> TokenUnion:
        numbers = (self._num_first, self._num_tokens, _MULTIPLE, _MIN_TOKENS)
        return TokenUnion(self._offsets, self._tokens, self._always, *numbers, adds_source=self._is_shared)

    def of(self, source: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the tokens for a source [source_len], in ascending order."""
        return self._of_in_numpy(source) if self._union is None else self._union.of(source)

    def _of_in_numpy(self, source: NDArray[np.int32]) -> NDArray[np.int32]:
        listed = (token for token in set(source.tolist()) if token < self._num_listed)
        parts = [self._tokens[self._offsets[token] : self._offsets[token + 1]] for token in listed]
        if self._is_shared:
            parts.append(source[source < self._num_tokens])
        # NumPy sorts 1,300 of these faster than it finds them in 32,000 flags.
        found = np.concatenate((self._always, *parts))
        found.sort()
        found = found[np.concatenate((found[:1] >= 0, found[1:] != found[:-1]))]
        wanted = min(max(-(-found.size // _MULTIPLE) * _MULTIPLE, _MIN_TOKENS), self._num_tokens)
        if missing := wanted - found.size:
            # At most as many tokens are listed between the first ones and those that are added here.
            is_free = np.ones(min(self._num_first + found.size + missing, self._num_tokens), np.bool_)
            is_free[: self._num_first] = False
            is_free[found[: found.searchsorted(is_free.size)]] = False
            found = np.concatenate((found, is_free.nonzero()[0][:missing].astype(np.int32)))
            found.sort()
        return found


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
