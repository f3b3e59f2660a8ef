"""Union of the lists of tokens of a source, in C. `ListedTokens` in server/engine defines its results."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import SharedArrays, load

_library = load("kvasir_list_tokens")
if _library is not None:
    _library.kvasir_list_tokens.restype = ctypes.c_int64
    _library.kvasir_list_tokens.argtypes = [*[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_void_p]

IS_AVAILABLE = _library is not None
"""Whether the library was built."""


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
