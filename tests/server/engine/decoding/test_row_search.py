import numpy as np
import pytest

from server.engine.decoding.native_search import held_powers, running_powers


@pytest.mark.parametrize("length_penalty", [-1.0, 0.0, 0.6, 1.0, 2.5])
def test_powers_of_lengths_are_those_of_numpy(length_penalty: float) -> None:
    for powers in (running_powers(length_penalty, 9), held_powers(length_penalty, 9)):
        assert powers.dtype == np.float32
        np.testing.assert_allclose(powers, [max(length, 1) ** length_penalty for length in range(10)], rtol=1e-6)
