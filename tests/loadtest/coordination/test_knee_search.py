import pytest

from loadtest.coordination.knee_search import KneeSearch
from loadtest.workload.scenario import Search


def _tried(settings: Search, capacity: float) -> tuple[list[float], float | None]:
    """Return the rates tried on a server that holds every rate up to `capacity`, and the knee."""
    search = KneeSearch(settings)
    tried = []
    while (rate := search.next_rate()) is not None:
        tried.append(rate)
        search.record(rate, is_held=rate <= capacity)
    return tried, search.knee


def test_rates_grow_until_one_misses_and_then_the_gap_is_halved() -> None:
    tried, knee = _tried(Search(start_rate=10, factor=2, bisections=3), capacity=47)
    assert tried == [10, 20, 40, 80, 60, 50, 45]
    assert knee == 45


def test_a_server_that_does_not_hold_the_first_rate_is_searched_below_it() -> None:
    tried, knee = _tried(Search(start_rate=16, factor=2, bisections=3), capacity=5)
    assert tried == [16, 8, 4, 6, 5, 5.5]
    assert knee == 5


@pytest.mark.parametrize("capacity", [0.7, 13.0, 333.0, 2500.0])
def test_the_knee_is_a_tried_rate_that_held(capacity: float) -> None:
    tried, knee = _tried(Search(start_rate=2, factor=1.5, bisections=4), capacity)
    assert knee == max(rate for rate in tried if rate <= capacity)
    assert min(rate for rate in tried if rate > capacity) / knee < 1.2


def test_rates_have_three_digits_and_the_search_ends_where_no_digit_is_left() -> None:
    tried, _ = _tried(Search(start_rate=100, factor=1.01, bisections=20), capacity=100.5)
    assert tried == [100, 101, 100.5] or len(tried) < 6
    assert all(float(f"{rate:.3g}") == rate for rate in tried)
