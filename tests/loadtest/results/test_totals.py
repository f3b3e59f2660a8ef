from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from loadtest.results.figures import Totals, from_json, to_json
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import MetricsSample, RunFolder, StageInfo
from loadtest.results.totals import Trial, knee, totals, totals_of
from tests.loadtest.results.test_records import ANSWERED
from tests.loadtest.results.test_run_folder import INFO
from tests.loadtest.simulated_run import (
    STEP_SECONDS,
    STEPS_PER_SECOND,
    Load,
    SimulatedServer,
    identical_answers,
    write_run,
)

SERVER = SimulatedServer(
    loads=(Load("half", rate=20.0, seconds=12.0), Load("overload", rate=80.0, seconds=12.0), Load("users", users=8)),
    impatient_share=0.1,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return write_run(tmp_path_factory.mktemp("run"), SERVER, answer_check=identical_answers())


def _stage(name: str = "steady", rate: float | None = 2.0, users: int | None = None) -> StageInfo:
    return StageInfo(name, rate, users, started=0.0, warm_up_ended=10.0, sending_ended=20.0, drained=30.0)


def _record(due: float, seconds: float | None = 0.1, outcome: Outcome = Outcome.ANSWERED, tokens: int = 10) -> Record:
    return replace(
        ANSWERED,
        stage="steady",
        scheduled=due,
        sent=due + 0.001,
        finished=None if seconds is None else due + seconds,
        outcome=outcome,
        reason="" if outcome is Outcome.ANSWERED else str(outcome),
        source_tokens=tokens,
        source_tokens_estimated=False,
        phases_ms={},
        first_event=None,
        event_gaps=(),
    )


def _totals(records: Sequence[Record], *stages: StageInfo, metrics: Sequence[MetricsSample] = ()) -> Totals:
    info = replace(INFO, stages=stages or (_stage(),))
    return totals_of(info, records, metrics, None)


def test_throughput_counts_the_answers_that_came_within_the_window() -> None:
    # Due before it and answered within; due and answered within; due within and answered after it.
    found = _totals([_record(9.9, seconds=0.5), _record(15.0), _record(19.9, seconds=5.0)]).stages[0]
    assert found.all.throughput == pytest.approx(0.2)
    assert found.all.goodput == pytest.approx(0.1)


def test_goodput_counts_only_what_met_its_objective_and_all_else_misses_it() -> None:
    fates = [
        _record(10, seconds=0.4),
        _record(11, seconds=0.401),
        _record(12, seconds=0.79, tokens=65),
        _record(13, seconds=0.01, outcome=Outcome.REJECTED),
        _record(14, seconds=0.01, outcome=Outcome.FAILED),
        _record(15, seconds=0.01, outcome=Outcome.TIMED_OUT),
        _record(16, seconds=None, outcome=Outcome.UNFINISHED),
    ]
    found = _totals(fates).stages[0].all
    assert found.within_objective == 2
    assert found.share_within_objective == pytest.approx(2 / 7)
    assert found.goodput == pytest.approx(0.2)
    once = dict.fromkeys((Outcome.REJECTED, Outcome.FAILED, Outcome.TIMED_OUT, Outcome.UNFINISHED), 1)
    assert found.outcomes == {Outcome.ANSWERED: 3, Outcome.HUNG_UP: 0, **once}
    assert found.reasons == {"rejected": 1, "failed": 1, "timed_out": 1, "unfinished": 1}


def test_an_impatient_client_counts_against_the_server_only_after_the_objective() -> None:
    left_early = _record(10, seconds=0.2, outcome=Outcome.HUNG_UP)
    left_late = _record(11, seconds=0.5, outcome=Outcome.HUNG_UP)
    assert _totals([_record(12), left_early]).stages[0].all.share_within_objective == 1.0
    assert _totals([_record(12), left_late]).stages[0].all.share_within_objective == 0.5
    assert _totals([left_early]).stages[0].all.share_within_objective is None


def test_a_late_generator_makes_its_stage_invalid_and_excludes_it_from_the_headline() -> None:
    late = [replace(_record(10 + n * 0.1), sent=10 + n * 0.1 + 0.02) for n in range(20)]
    found = _totals(late)
    assert found.stages[0].is_late
    assert found.headline.is_void
    assert found.headline.late_stages == ("steady",)
    assert (found.headline.goodput, found.headline.knee_rate) == (None, None)


@pytest.mark.parametrize(
    ("trials", "found"),
    [
        ([(10, 1.0, 100), (20, 0.99, 100), (30, 0.989, 100)], 20),
        ([(30, 0.9, 100), (10, 1.0, 100), (20, 0.995, 100)], 20),  # in any order
        ([(20, 1.0, 100), (20, 0.9, 400), (10, 1.0, 100)], 10),  # of two stages of a rate, the longer one decides
        ([(20, 0.9, 100), (20, 1.0, 400), (10, 1.0, 100)], 20),
        ([(47, 1.0, 400), (43, 0.96, 1700), (34, 1.0, 300)], 34),  # a lucky short stage next to a long one
        ([(10, 0.95, 50), (20, 1.0, 100)], 20),  # an unlucky short one
        ([(10, 0.5, 100)], None),
        ([(10, None, 100)], None),
        ([], None),
    ],
)
def test_the_knee_is_the_highest_rate_that_held_and_that_no_longer_stage_refutes(
    trials: list[tuple[float, float | None, int]], found: float | None
) -> None:
    tried = [Trial(rate, share, count, frozenset({"sentence"})) for rate, share, count in trials]
    assert knee(tried, 0.99) == found


def test_percentiles_and_rates_are_those_of_an_exact_computation(folder: RunFolder) -> None:
    info, records = folder.info(), list(folder.records())
    for stage, found in zip(info.stages, totals(folder).stages, strict=True):
        due = [r for r in records if r.stage == stage.name and stage.warm_up_ended <= r.scheduled < stage.sending_ended]
        latency = np.sort([1000 * (r.latency or 0.0) for r in due if r.outcome is Outcome.ANSWERED])
        assert found.all.latency_ms is not None
        for percent, value in (
            (50, found.all.latency_ms.p50),
            (95, found.all.latency_ms.p95),
            (99, found.all.latency_ms.p99),
        ):
            assert value == pytest.approx(latency[ceil(percent * len(latency) / 100) - 1], rel=1e-3)
        within = sum(
            r.outcome is Outcome.ANSWERED and 1000 * (r.latency or 0.0) <= 400 * -(-r.source_tokens // 64) for r in due
        )
        seconds = stage.sending_ended - stage.warm_up_ended
        assert found.all.goodput == pytest.approx(within / seconds)
        assert found.all.sent == len(due) == sum(found.all.outcomes.values())
        assert sum(kind.sent for kind in found.kinds.values()) == found.all.sent
        assert sum(bucket.latency_ms.count for bucket in found.all.by_length) == len(latency)


def test_the_phases_and_the_rest_add_up_to_the_latency(folder: RunFolder) -> None:
    for stage in totals(folder).stages:
        assert stage.all.latency_ms is not None
        total = sum(phase.mean for phase in stage.all.phases_ms.values())
        assert total == pytest.approx(stage.all.latency_ms.mean, rel=1e-3)


def test_streams_count_their_first_token_from_the_instant_they_were_due() -> None:
    stream = replace(_record(10.0, seconds=0.5), first_event=10.2, event_gaps=(0.1, 0.2))
    found = _totals([stream, _record(11)]).stages[0].all
    assert found.first_token_ms is not None
    assert found.gap_ms is not None
    assert (found.first_token_ms.count, found.gap_ms.count) == (1, 2)
    assert found.first_token_ms.max == pytest.approx(200)
    assert found.gap_ms.mean == pytest.approx(150)


def test_occupancy_is_of_the_window_and_of_what_grew_in_it(folder: RunFolder) -> None:
    stage = totals(folder).stages[1]
    assert stage.occupancy is not None
    assert stage.occupancy.steps_per_second == pytest.approx(STEPS_PER_SECOND, rel=0.15)
    assert stage.occupancy.step_ms == pytest.approx(STEP_SECONDS * 1000)
    assert stage.occupancy.rows_per_step == pytest.approx(SERVER.num_servers, abs=0.5)
    assert stage.occupancy.max_waiting is not None
    assert stage.occupancy.max_waiting <= SERVER.max_waiting


def test_totals_survive_json(folder: RunFolder) -> None:
    found = totals(folder)
    assert from_json(to_json(found)) == found
