import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from pydantic import JsonValue

from loadtest.report.headline import headline_of
from loadtest.results.comparability import warnings_of
from loadtest.results.figures import Totals
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import AnswerCheckResult, StageInfo
from loadtest.results.thresholds import ExitCode, Thresholds, verdict_of
from loadtest.results.totals import totals_of
from tests.loadtest.results.test_records import ANSWERED
from tests.loadtest.results.test_run_folder import INFO

STAGE = StageInfo("steady", 10.0, None, started=0.0, warm_up_ended=0.0, sending_ended=10.0, drained=11.0)


def _records(lag: float = 0.0, seconds: float = 0.2, num_failed: int = 0, num_rejected: int = 0) -> list[Record]:
    outcomes = [Outcome.FAILED] * num_failed + [Outcome.REJECTED] * num_rejected
    outcomes += [Outcome.ANSWERED] * (100 - len(outcomes))
    return [
        replace(
            ANSWERED, stage="steady", scheduled=n / 10, sent=n / 10 + lag, finished=n / 10 + seconds, outcome=outcome
        )
        for n, outcome in enumerate(outcomes)
    ]


def _totals(records: Sequence[Record], identical: int = 50, stage: StageInfo = STAGE) -> Totals:
    guard = AnswerCheckResult(50, identical, 100, identical / 50, ())
    return totals_of(replace(INFO, stages=(stage,)), records, (), guard)


def test_a_run_that_holds_every_threshold_is_fine() -> None:
    verdict = verdict_of(_totals(_records()), Thresholds(max_p95_ms=250, min_goodput=9, max_error_ratio=0.0))
    assert verdict.exit_code == 0
    assert verdict.sentence == (
        "exit 0: every threshold held, all 50 compared answers equal those of the idle server, requests left on time"
    )


@pytest.mark.parametrize(
    ("thresholds", "sentence"),
    [
        (Thresholds(max_p95_ms=150), r"exit 2: p95 of stage steady is 200\.\d ms, above 150"),
        (Thresholds(min_goodput=10.5), r"exit 2: goodput is 9\.50 requests/s, below 10\.5"),
        (Thresholds(max_error_ratio=0.01), r"exit 2: 5\.00% of the requests failed, above 1\.00%"),
        (Thresholds(max_p95_ms=150, min_goodput=11), r"exit 2: p95 .*; goodput .*"),
    ],
)
def test_a_missed_threshold_is_named_with_both_numbers(thresholds: Thresholds, sentence: str) -> None:
    verdict = verdict_of(_totals(_records(num_failed=5)), thresholds)
    assert re.fullmatch(sentence, verdict.sentence), verdict.sentence


@pytest.mark.parametrize(("checked", "compared"), [(0, "nothing could be compared"), (40, "of 40 compared")])
def test_what_the_idle_server_did_not_answer_again_is_not_called_different(checked: int, compared: str) -> None:
    guard = AnswerCheckResult(checked, checked, 100, 1.0, (), {"HTTP 429": 7, "no answer: ConnectionRefusedError": 3})
    totals = totals_of(replace(INFO, stages=(STAGE,)), _records(), (), guard)
    verdict = verdict_of(totals)
    unanswered = f"10 of {checked + 10} requests were not answered again by the idle server (HTTP 429)"
    assert verdict.sentence == f"exit 2: {unanswered}"
    assert f"{compared}; {unanswered}" in [line.meaning for line in headline_of(totals, verdict)]
    assert f"one: {unanswered}." in list(warnings_of(["one"], [INFO], [totals]))


def test_a_late_generator_makes_the_run_invalid_whatever_it_measured() -> None:
    verdict = verdict_of(_totals(_records(lag=0.02)), Thresholds(max_p95_ms=1))
    assert verdict.exit_code == 3
    reason = "the generator was late in stage steady (p99 of its lag 20.0 ms)"
    assert verdict.sentence.startswith(f"exit 3: invalid: {reason}")


def test_wrong_answers_decide_in_an_invalid_run_too() -> None:
    assert verdict_of(_totals(_records(), identical=49)).sentence == (
        "exit 2: 1 of 50 answers under load differ from those of the idle server"
    )
    verdict = verdict_of(_totals(_records(lag=0.02), identical=49))
    assert verdict.exit_code is ExitCode.MISSED
    assert "invalid" in verdict.sentence


def test_an_interrupted_run_fails_and_names_the_missing_stages() -> None:
    planned: dict[str, JsonValue] = {"stages": [{"name": "steady"}, {"name": "second"}, {"name": "third"}]}
    info = replace(INFO, scenario=planned, stages=(STAGE,), interrupted=True)
    totals = totals_of(info, _records(), (), None)
    assert verdict_of(totals, Thresholds(max_p95_ms=250)).sentence == (
        "exit 4: the run was interrupted before second, third"
    )
    assert verdict_of(totals, Thresholds(max_p95_ms=150)).exit_code is ExitCode.INTERRUPTED
    in_the_last = replace(info, scenario={"stages": [{"name": "steady"}]})
    assert verdict_of(totals_of(in_the_last, _records(), (), None)).sentence == "exit 4: the run was interrupted"
    too_early = verdict_of(totals_of(replace(info, stages=()), [], (), None))
    assert too_early.sentence.startswith("exit 1: no request was due in any measured window; the run was interrupted")


def test_a_run_without_an_answer_is_no_run() -> None:
    assert verdict_of(_totals([])).sentence == "exit 1: no request was due in any measured window"
    refused = [replace(r, outcome=Outcome.FAILED, reason="connection refused") for r in _records()]
    assert verdict_of(_totals(refused)).sentence == "exit 1: none of 100 requests was answered (connection refused)"
