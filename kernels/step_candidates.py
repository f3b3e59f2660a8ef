"""Candidates of a decoder step, from the logits of its graph: native if the library was built, otherwise in NumPy.

Both return the same bits. In NumPy a step takes 10 to 40 us more: the graph has evicted NumPy's code and data.
"""

import ctypes

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import load

_library = load("kvasir_step_candidates")
if _library is not None:
    _library.kvasir_step_candidates.restype = ctypes.c_int64
    _library.kvasir_step_candidates.argtypes = [*[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 2]


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

        Return the number of rows whose best logit is no finite number.
        """
        if _library is not None:
            num_not_finite: int = _library.kvasir_step_candidates(*self._arguments)
            return num_not_finite
        self._lengths += 1
        if self._with_scores:
            np.subtract(self._logits, self._normalizers, out=self.log_probs)
        return len(self._logits) - int(np.count_nonzero(np.isfinite(self._logits[:, 0])))
