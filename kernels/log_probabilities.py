"""Log-probabilities of candidates: native if the library was built, otherwise in NumPy.

Both return the same bits. In NumPy a step takes 6 to 9 us more: the graph has evicted NumPy's code and data.
"""

import ctypes

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import load

_library = load("kvasir_log_probabilities")
if _library is not None:
    _library.kvasir_log_probabilities.restype = None
    _library.kvasir_log_probabilities.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2]


class LogProbabilities:
    """Differences of `logits` [rows, num_candidates] and `normalizers` [rows], in arrays that do not move."""

    def __init__(self, logits: NDArray[np.float32], normalizers: NDArray[np.float32]) -> None:
        assert all(array.flags.c_contiguous for array in (logits, normalizers)), "they are read by address"
        self.values = np.full(logits.shape, np.nan, np.float32)
        """The differences; NaN before the first update."""
        self._logits, self._normalizers = logits, normalizers[:, None]
        addresses = (logits.ctypes.data, normalizers.ctypes.data, self.values.ctypes.data)
        self._arguments = (*addresses, *logits.shape)

    def update(self) -> None:
        """Compute the differences again."""
        if _library is None:
            np.subtract(self._logits, self._normalizers, out=self.values)
        else:
            _library.kvasir_log_probabilities(*self._arguments)
