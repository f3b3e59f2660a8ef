"""Native operators with drawn shapes: each row has the same bits alone and in a batch.

`python -m tests.kernels.sanitize` draws more of them, with NUM_SHAPES.
"""

import os

import numpy as np
import pytest

from export.int8 import operators
from tests.kernels.batches import MAKERS, Sizes
from tests.kernels.operator_sessions import Arrays, OneOperator

NUM_SHAPES = int(os.environ.get("NUM_SHAPES", "25"))

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


@pytest.mark.parametrize("kind", [operators.LINEAR, operators.LINEAR_RELU])
def test_sizes_that_do_not_fit_together_are_refused(kind: str) -> None:
    numbers = np.random.default_rng(1)
    operator = OneOperator(kind, {"zero_point": 128, "levels": 127.0})
    for _ in range(NUM_SHAPES):
        inputs, outputs, rows = int(numbers.integers(1, 20)) * 4, int(numbers.integers(1, 100)), 3
        wrong: Arrays = {
            "hidden": numbers.standard_normal((rows, inputs)).astype(np.float32),
            "weight": numbers.integers(-8, 8, (outputs + 1, inputs + 4)).astype(np.int8),
            "scales": np.ones(outputs, np.float32),
            "sums": np.zeros(outputs, np.int32),
            "bias": np.zeros(outputs, np.float32),
        }
        with pytest.raises(Exception, match=r"Linear|dimension|size|shape|sizes|elements"):
            operator.run(wrong)
