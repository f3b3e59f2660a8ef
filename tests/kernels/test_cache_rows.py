import numpy as np
import pytest
from numpy.typing import DTypeLike

from kernels import cache_rows as rows
from kernels.cache_rows import RowCopier


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
@pytest.mark.parametrize("is_native", [True, False])
def test_rows_continue_in_other_rows_as_far_as_they_are_filled(
    dtype: DTypeLike, is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_native:
        monkeypatch.setattr(rows, "_library", None)
    random = np.random.default_rng(0)
    cache = random.integers(-100, 100, (4, 9, 3, 11, 8)).astype(dtype)
    before = cache.copy()
    # One source for two rows; nothing, one position and all of them.
    sources, destinations, lengths = np.array([2, 2, 7, 0]), np.array([4, 8, 1, 3]), np.array([5, 0, 11, 1], np.int32)
    copier = RowCopier(cache)
    copier.copy(sources[:2], destinations[:2], lengths[:2])
    copier.copy(sources[2:], destinations[2:], lengths[2:])
    for source, destination, length in zip(sources, destinations, lengths, strict=True):
        assert np.array_equal(cache[:, destination, :, :length], before[:, source, :, :length])
        assert np.array_equal(cache[:, destination, :, length:], before[:, destination, :, length:])
    others = [row for row in range(9) if row not in destinations]
    assert np.array_equal(cache[:, others], before[:, others])
