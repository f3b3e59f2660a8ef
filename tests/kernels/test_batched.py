"""A row gets the same bits alone and in company, from one thread and from several, on every instruction set."""

import numpy as np
import pytest

from tests.kernels.batches import LARGE, MAKERS, SMALL, Batch, Sizes
from tests.kernels.instruction_sets import INSTRUCTION_SETS
from tests.kernels.operator_sessions import Numbers, OneOperator


def _open(batch: Batch, threads: int = 1) -> OneOperator:
    return OneOperator(batch.operator, batch.attributes, threads=threads)


def _assert_same_bits(found: Numbers, expected: Numbers) -> None:
    for name, array in expected.items():
        assert found[name].tobytes() == array.tobytes(), name


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("maker", MAKERS)
def test_a_row_gets_the_same_bits_alone_and_in_company(maker: str) -> None:
    batch = MAKERS[maker](SMALL)
    operator = _open(batch)
    alone = [operator.run(batch.of([row])) for row in range(SMALL.num_rows)]
    random = np.random.default_rng(0)
    for num_rows in range(1, SMALL.num_rows + 1):
        places = random.permutation(SMALL.num_rows)[:num_rows].tolist()
        together = operator.run(batch.of(places))
        for name, array in together.items():
            expected = np.concatenate([alone[place][name] for place in places])
            assert array.tobytes() == expected.tobytes(), (name, num_rows)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("maker", MAKERS)
def test_threads_that_share_the_work_give_the_same_bits(maker: str) -> None:
    batch = MAKERS[maker](LARGE)
    all_rows = list(range(LARGE.num_rows))
    expected = _open(batch).run(batch.of(all_rows))
    operator = _open(batch, threads=2)
    for _ in range(5):
        _assert_same_bits(operator.run(batch.of(all_rows)), expected)
    for row in (0, 1, LARGE.num_rows - 1):
        alone = operator.run(batch.of([row]))
        _assert_same_bits(alone, {name: array[[row]] for name, array in expected.items()})


@pytest.mark.parametrize("sizes", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("maker", MAKERS)
def test_every_instruction_set_gives_the_same_bits(maker: str, sizes: Sizes, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = MAKERS[maker](sizes)
    found = []
    for name in INSTRUCTION_SETS:
        monkeypatch.setenv("KVASIR_KERNELS", name)
        found.append(_open(batch).run(batch.of(list(range(sizes.num_rows)))))
    for other in found[1:]:
        _assert_same_bits(other, found[0])


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("maker", MAKERS)
def test_weights_in_the_graph_give_the_same_bits(maker: str) -> None:
    batch = MAKERS[maker](SMALL)
    expected = _open(batch).run(batch.inputs)
    constants = {name: array for name, array in batch.inputs.items() if name not in batch.rows}
    operator = OneOperator(batch.operator, batch.attributes, constants=constants)
    for _ in range(2):
        _assert_same_bits(operator.run({name: batch.inputs[name] for name in batch.rows}), expected)
