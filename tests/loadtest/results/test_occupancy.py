import pytest

from loadtest.results.run_folder import MetricsSample
from loadtest.results.timeline import cached_share


def _sample(at: float, **counts: int) -> MetricsSample:
    return MetricsSample(at, {f"kvasir_sentences_total.{outcome}": float(count) for outcome, count in counts.items()})


def test_the_cached_share_counts_the_sentences_of_the_run_only() -> None:
    samples = (
        _sample(0.0, decoded=100, cached=50, coalesced=0),
        _sample(1.0, decoded=120, cached=51, coalesced=0),
        _sample(2.0, decoded=130, cached=55, coalesced=5),
    )
    assert cached_share(samples) == pytest.approx(10 / 40)
    assert cached_share(samples[:1]) == cached_share(()) == 0.0


def test_the_cached_share_continues_from_zero_after_a_restart_of_the_server() -> None:
    samples = (
        _sample(0.0, decoded=100, cached=500),
        _sample(1.0, decoded=110, cached=510),  # 10 and 10
        _sample(2.0, decoded=20, cached=10),  # restarted: 20 and 10
        _sample(3.0, decoded=30, cached=20),  # 10 and 10
    )
    assert cached_share(samples) == pytest.approx(30 / 70)


def test_a_restart_is_detected_although_one_counter_has_overtaken_its_old_value() -> None:
    samples = (_sample(0.0, decoded=10, cached=90), _sample(1.0, decoded=40, cached=10))
    assert cached_share(samples) == pytest.approx(10 / 50)


def test_a_restart_is_detected_by_a_series_that_is_missing() -> None:
    samples = (_sample(0.0, decoded=10, cached=90), _sample(1.0, decoded=20))
    assert cached_share(samples) == 0.0
