import pytest

from loadtest.records import Outcome, Recorder, Summary
from loadtest.report import from_json, render, to_json


def _recorder() -> Recorder:
    """A window from 10 s to 20 s with 100 answers of 1 ms to 100 ms, a tenth of them by beam search."""
    recorder = Recorder(opened=10.0, closed=20.0)
    for milliseconds in range(1, 101):
        ticket = recorder.start(11.0, uses_beam=milliseconds % 10 == 0)
        recorder.finish(ticket, 11.0 + milliseconds / 1000, Outcome.ANSWERED, num_sentences=2, target_tokens=5)
    return recorder


def _request(recorder: Recorder, started: float, finished: float, outcome: Outcome, reason: str = "") -> None:
    recorder.finish(recorder.start(started, uses_beam=False), finished, outcome, num_sentences=1, reason=reason)


def test_percentiles_are_times_that_were_observed() -> None:
    latency = _recorder().summary(users=4).latency["all"]
    observed = (latency.p50, latency.p90, latency.p95, latency.p99, latency.max)
    assert observed == pytest.approx((0.050, 0.090, 0.095, 0.099, 0.100))


def test_rates_are_per_second_of_the_window() -> None:
    summary = _recorder().summary(users=4)
    assert summary.window_seconds == 10.0
    assert summary.requests_per_second == pytest.approx(10.0)
    assert summary.sentences_per_second == pytest.approx(20.0)
    assert summary.target_tokens_per_second == pytest.approx(50.0)


def test_greedy_and_beam_are_told_apart() -> None:
    latency = _recorder().summary(users=4).latency
    assert {kind: value.num_requests for kind, value in latency.items()} == {"all": 100, "greedy": 90, "beam": 10}
    assert latency["beam"].p50 == pytest.approx(0.050)
    assert latency["greedy"].max == pytest.approx(0.099)


def test_what_was_sent_during_the_ramp_is_in_no_latency() -> None:
    recorder = _recorder()
    _request(recorder, started=9.0, finished=12.0, outcome=Outcome.ANSWERED)
    assert recorder.summary(users=4).latency["all"].max == pytest.approx(0.1)


def test_an_answer_that_arrives_in_the_drain_counts_in_the_latency_and_not_in_the_rate() -> None:
    recorder = _recorder()
    _request(recorder, started=19.5, finished=23.0, outcome=Outcome.ANSWERED)
    summary = recorder.summary(users=4)
    assert summary.latency["all"].max == pytest.approx(3.5)
    assert summary.requests_per_second == pytest.approx(10.0)


def test_failures_are_counted_by_reason_and_never_as_answers() -> None:
    recorder = _recorder()
    for _ in range(3):
        _request(recorder, started=12.0, finished=12.0001, outcome=Outcome.FAILED, reason="HTTP 500")
    _request(recorder, started=12.0, finished=12.0001, outcome=Outcome.FAILED, reason="translation is empty")
    summary = recorder.summary(users=4)
    assert summary.outcomes[Outcome.FAILED] == 4
    assert summary.outcomes[Outcome.ANSWERED] == summary.latency["all"].num_requests == 100
    assert summary.reasons == {"HTTP 500": 3, "translation is empty": 1}
    assert summary.latency["all"].p50 == pytest.approx(0.050)
    assert summary.exit_code == 1


def test_a_rejection_is_no_failure_and_no_answer() -> None:
    recorder = _recorder()
    _request(recorder, started=12.0, finished=12.001, outcome=Outcome.REJECTED)
    summary = recorder.summary(users=4)
    assert summary.outcomes[Outcome.REJECTED] == 1
    assert summary.outcomes[Outcome.ANSWERED] == 100
    assert summary.exit_code == 0


def test_a_request_without_an_answer_is_unfinished() -> None:
    recorder = _recorder()
    recorder.start(15.0, uses_beam=False)
    summary = recorder.summary(users=4)
    assert summary.outcomes[Outcome.UNFINISHED] == 1
    assert summary.exit_code == 1


def test_a_test_without_answers_fails_and_still_prints() -> None:
    recorder = Recorder(opened=0.0, closed=1.0)
    _request(recorder, started=0.5, finished=0.6, outcome=Outcome.REJECTED)
    summary = recorder.summary(users=1)
    assert summary.latency == {}
    assert summary.exit_code == 1
    assert "1 rejected" in render(summary)


@pytest.mark.parametrize(("opened", "closed"), [(None, None), (None, 5.0), (5.0, None), (5.0, 5.0)])
def test_there_are_no_totals_without_a_window(opened: float | None, closed: float | None) -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        Recorder(opened=opened, closed=closed).summary(users=1)


def test_the_report_names_the_percentiles_and_the_rates() -> None:
    report = render(_recorder().summary(users=4))
    assert "20.0 sentences/s" in report
    all_line = next(line for line in report.splitlines() if line.startswith("all "))
    assert all_line.split() == ["all", "100", "50.0", "90.0", "95.0", "99.0", "100.0"]
    assert "Closed loop" in report


def test_a_summary_survives_json() -> None:
    summary = _recorder().summary(users=4)
    read: Summary = from_json(to_json(summary))
    assert read == summary
