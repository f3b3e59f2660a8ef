"""Native operators with drawn shapes: each row has the same bits alone and in a batch.

`python -m tests.kernels.sanitize` draws more of them, with NUM_SHAPES.
"""

import os

import numpy as np
import pytest

from tests.kernels.batches import MAKERS, Sizes
from tests.kernels.operator_sessions import OneOperator

NUM_SHAPES = int(os.environ.get("NUM_SHAPES", "12"))

pytestmark = pytest.mark.usefixtures("instruction_set")


def _sizes(numbers: np.random.Generator) -> Sizes:
    def drawn(first: int, last: int, step: int = 1) -> int:
        return int(numbers.integers(first, last + 1)) * step

    return Sizes(
        num_rows=drawn(1, 20),
        inputs=drawn(1, 40, 4),
        outputs=drawn(1, 200),
        vocab=drawn(500, 3000),
        heads=drawn(1, 16) if numbers.integers(3) else 1,
        head_dim=drawn(1, 256) if numbers.integers(3) else drawn(1, 32, 8),
        positions=drawn(1, 50),
    )


@pytest.mark.parametrize("maker", MAKERS)
def test_rows_of_any_shape_are_the_same_alone_and_in_a_batch(maker: str) -> None:
    numbers = np.random.default_rng(sum(map(ord, maker)))
    for _ in range(NUM_SHAPES):
        sizes = _sizes(numbers)
        batch = MAKERS[maker](sizes)
        operator = OneOperator(batch.operator, batch.attributes)
        together = operator.run(batch.inputs)
        for row in {0, sizes.num_rows // 2, sizes.num_rows - 1}:
            alone = operator.run(batch.of([row]))
            for name, array in together.items():
                assert array[[row]].tobytes() == alone[name].tobytes(), (sizes, name)
        for name, array in operator.run(batch.of([])).items():
            assert array.shape == (0, *together[name].shape[1:]), (sizes, name)
