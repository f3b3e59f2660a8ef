"""Embeddings from the panels of an int8 matrix."""

import numpy as np
import pytest

from export.int8 import operators
from tests.kernels.operator_sessions import OneOperator

WIDTHS = (1, 3, 4, 20, 64)
NUM_TOKENS = 130  # a part of the third panel


@pytest.mark.parametrize("is_native", [True, False])
@pytest.mark.parametrize("shape", [(3,), (2, 5), (2, 1, 3), (0, 4)])
def test_every_token_has_its_column(shape: tuple[int, ...], *, is_native: bool) -> None:
    random = np.random.default_rng(0)
    for width in WIDTHS:
        matrix = random.integers(-127, 128, (width, NUM_TOKENS)).astype(np.int8)
        scales = random.uniform(1e-3, 1e-1, NUM_TOKENS).astype(np.float32)
        tokens = random.permutation(NUM_TOKENS)[: int(np.prod(shape))].reshape(shape).astype(np.int32)
        operator = OneOperator(operators.EMBED_TOKENS, {"width": width}, is_native=is_native)
        found = operator.run({"tokens": tokens, "weight": operators.in_panels(matrix), "scales": scales})["output"]
        np.testing.assert_array_equal(found, matrix.T[tokens].astype(np.float32) * scales[tokens][..., None])
