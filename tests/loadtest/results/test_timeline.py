from dataclasses import replace

import pytest

from loadtest.results.records import Outcome
from loadtest.results.run_folder import MetricsSample
from loadtest.results.timeline import timeline_of
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


def test_a_long_run_has_longer_bins_and_no_more_of_them() -> None:
    timeline = timeline_of([replace(STAGE, sending_ended=3600.0, drained=3600.0)], [ANSWERED], ())
    assert timeline.bin_seconds == 20.0
    assert len(timeline.at) == 180


def test_a_run_without_stages_has_no_time() -> None:
    timeline = timeline_of([], [], ())
    assert timeline.at == timeline.due == timeline.p50_ms == ()
