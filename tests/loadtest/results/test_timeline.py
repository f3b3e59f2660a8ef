from dataclasses import replace

import pytest

from loadtest.results.records import Outcome
from loadtest.results.run_folder import MetricsSample
from loadtest.results.timeline import cached_share, timeline_of
from tests.loadtest.results.test_records import ANSWERED
from tests.loadtest.results.test_run_folder import STAGE


def test_requests_count_when_they_were_due_and_answers_when_they_came() -> None:
    records = [
        replace(ANSWERED, scheduled=0.2, sent=0.2, finished=1.7),
        replace(ANSWERED, scheduled=0.4, sent=0.4, finished=0.5),
        replace(ANSWERED, scheduled=2.1, sent=2.1, finished=2.2, outcome=Outcome.REJECTED),
    ]
    timeline = timeline_of([replace(STAGE, sending_ended=3.0, drained=3.0)], records, ())
    assert timeline.at == (0.5, 1.5, 2.5)
    assert timeline.due == (2.0, 0.0, 1.0)
    assert timeline.answered == (1.0, 1.0, 0.0)
    assert timeline.refused == (0.0, 0.0, 1.0)
    assert timeline.p50_ms[0] == pytest.approx(100)
    assert timeline.p99_ms[0] == pytest.approx(1500)
    assert timeline.p50_ms[1:] == timeline.p99_ms[1:] == (None, None)


def test_rows_per_step_are_those_since_the_last_sample() -> None:
    samples = [
        MetricsSample(float(at), {"kvasir_step_rows_count": 10.0 * at, "kvasir_step_rows_sum": rows})
        for at, rows in enumerate((0.0, 40.0, 100.0))
    ]
    timeline = timeline_of([STAGE], [], samples)
    assert timeline.rows_per_step == (None, 4.0, 6.0)
    assert timeline.waiting == (None, None, None)


def _sample(at: float, **counts: int) -> MetricsSample:
    return MetricsSample(at, {f"kvasir_sentences_total.{outcome}": float(count) for outcome, count in counts.items()})


def test_the_cached_share_continues_from_zero_after_a_restart_of_the_server() -> None:
    samples = (
        _sample(0.0, decoded=100, cached=500),
        _sample(1.0, decoded=110, cached=510),  # 10 and 10
        _sample(2.0, decoded=20, cached=10),  # restarted: 20 and 10
        _sample(3.0, decoded=30, cached=20),  # 10 and 10
    )
    assert cached_share(samples) == pytest.approx(30 / 70)
