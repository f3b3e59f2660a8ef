import math

import pytest

from model.training.settings import Schedule
from model.training.trainer import learning_rate


@pytest.mark.parametrize("schedule", ["inverse-square-root", "cosine"])
def test_the_rate_rises_in_a_line_to_its_highest(schedule: Schedule) -> None:
    rates = [learning_rate(schedule, step, 0.4, 4, 100) for step in (1, 2, 3, 4)]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("step", [4000, 4001, 16_000, 99_999])
def test_the_inverse_square_root_is_that_of_the_paper(step: int) -> None:
    # Vaswani et al. 2017, section 5.3; d_model is chosen so that both have the same highest rate.
    highest, warmup = 7e-4, 4000
    scale = highest * math.sqrt(warmup)
    paper = scale * min(step**-0.5, step * warmup**-1.5)
    assert learning_rate("inverse-square-root", step, highest, warmup, 100_000) == pytest.approx(paper)


def test_a_cosine_is_half_way_down_half_way_through_and_ends_at_nothing() -> None:
    rates = [learning_rate("cosine", step, 1.0, 10, 110) for step in (10, 35, 60, 110, 200)]
    assert rates == pytest.approx([1.0, (1 + math.sqrt(0.5)) / 2, 0.5, 0.0, 0.0])


@pytest.mark.parametrize("schedule", ["inverse-square-root", "cosine"])
def test_without_warm_up_the_first_rate_is_near_the_highest(schedule: Schedule) -> None:
    assert learning_rate(schedule, 1, 1.0, 0, 1000) == pytest.approx(1.0, abs=1e-5)
