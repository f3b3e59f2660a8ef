import pytest

from server.engine.decoding.constrained import bank_sizes


@pytest.mark.parametrize(
    ("beam_size", "num_candidates", "expected"),
    [
        (6, [10, 10, 10], [2, 2, 2]),
        (8, [10, 10, 10], [2, 2, 4]),
        (4, [10, 0, 0, 0, 0, 0], [4, 0, 0, 0, 0, 0]),
        (4, [10, 3, 0, 1, 0, 0], [0, 3, 0, 1, 0, 0]),
        (6, [1, 10, 0], [1, 5, 0]),
        (4, [1, 1, 1], [1, 1, 1]),
        (3, [0, 0], [0, 0]),
    ],
)
def test_beams_are_distributed_over_banks_that_can_use_them(
    beam_size: int, num_candidates: list[int], expected: list[int]
) -> None:
    assert bank_sizes(beam_size, num_candidates) == expected
