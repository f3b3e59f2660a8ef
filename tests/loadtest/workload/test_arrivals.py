import numpy as np
import pytest

from loadtest.workload.arrivals import arrival_times
from loadtest.workload.scenario import Stage


def test_poisson_arrivals_have_exponential_gaps() -> None:
    times = arrival_times(Stage(name="s", seconds=2000, rate=50), seed=1)
    gaps = np.diff(times)
    assert len(times) == pytest.approx(100_000, rel=0.02)
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.02)
    assert gaps.std() == pytest.approx(1 / 50, rel=0.02)
    # The share of gaps longer than the mean is 1/e for no other shape of this mean and deviation that is in use.
    assert (gaps > 1 / 50).mean() == pytest.approx(np.exp(-1), abs=0.01)


def test_arrivals_ascend_and_end_with_the_stage() -> None:
    times = arrival_times(Stage(name="s", seconds=10, rate=100), seed=3)
    assert (np.diff(times) >= 0).all()
    assert times[0] > 0
    assert 9.5 < times[-1] < 10


def test_the_same_seed_gives_the_same_instants() -> None:
    stage = Stage(name="s", seconds=10, rate=20)
    assert arrival_times(stage, 1).tolist() == arrival_times(stage, 1).tolist()
    assert arrival_times(stage, 1).tolist() != arrival_times(stage, 2).tolist()
    other = Stage(name="t", seconds=10, rate=20)
    assert arrival_times(stage, 1).tolist() != arrival_times(other, 1).tolist()


@pytest.mark.parametrize(("start", "end"), [(10, 90), (90, 10)])
def test_a_ramp_changes_its_rate_evenly(start: float, end: float) -> None:
    times = arrival_times(Stage(name="s", seconds=1000, rate=start, ramp_to=end), seed=1)
    counts, _ = np.histogram(times, bins=4, range=(0, 1000))
    middles = start + (end - start) * np.array([0.125, 0.375, 0.625, 0.875])
    assert counts / 250 == pytest.approx(middles, rel=0.06)
