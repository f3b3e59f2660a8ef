import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from loadtest.cli.run import LOCUSTFILE, LoadTestFailed, RunOptions, run_scenario
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import RunFolder, StageInfo
from loadtest.results.thresholds import Thresholds
from loadtest.workload.arrivals import arrival_times
from loadtest.workload.requests import request_sequence
from loadtest.workload.scenario import Kind, Scenario, ScenarioInvalid, Search, Stage
from tests.loadtest.answering import Reply, answering

# Locust takes seconds to start: it is started five times here, and much is asserted of each run.
THRESHOLDS = Thresholds(max_p95_ms=250.0, max_error_ratio=0.0)
OPTIONS = RunOptions(seed=7, guard_requests=100_000, urgent=False, quiet=True, thresholds=THRESHOLDS)
KINDS = (Kind(name="sentence", weight=3), Kind(name="list", text="list"), Kind(name="beam", beam_size=4))
OPEN = Stage(name="open", rate=60, seconds=1.0, warm_up_seconds=0.2)
PATIENCE_SECONDS = 600

SEARCHED = Scenario(
    name="searched",
    description="",
    kinds=KINDS,
    search=Search(start_rate=40, factor=2, bisections=0, seconds=0.5, warm_up_seconds=0.0, max_rate=80),
    stages=(OPEN, Stage(name="closed", users=2, seconds=0.4), Stage(name="half", rate="0.5 knee", seconds=0.3)),
)
TROUBLED = Scenario(
    name="troubled",
    description="",
    kinds=(Kind(name="sentence"), Kind(name="impatient", hang_up_after=(0.05, 0.1)), Kind(name="patient")),
    stages=(
        OPEN.model_copy(update={"kinds": ("sentence",)}),
        Stage(name="slow", rate=50, seconds=0.6, arrivals="constant", kinds=("impatient", "patient")),
    ),
)
TROUBLES = {
    4: Reply(429, headers={"Retry-After": "2"}),
    5: Reply(503),
    6: Reply(504),
    7: Reply(500),
    8: Reply(body=b"no"),
    9: Reply(body=b'{"translations": []}'),
    10: Reply(hangs_up=True),
}


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, list[dict[str, object]]]:
    """A run without errors, and the bodies that the server received."""
    with answering() as server:
        return run_scenario(server.url, SEARCHED, tmp_path_factory.mktemp("searched") / "run", OPTIONS), server.bodies


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of two workers with one request for every kind of failure, and a stage with a slow server."""
    folder = tmp_path_factory.mktemp("troubled")
    request = request_sequence(TROUBLED, 7, "open")
    replies = {request(number).texts: reply for number, reply in TROUBLES.items()}
    slow = request_sequence(TROUBLED, 7, "slow")
    replies |= {slow(number).texts: Reply(body=b"{}", after_seconds=0.8) for number in range(30)}
    with answering(lambda texts, number: replies.get(tuple(texts))) as server:
        subprocess.run(
            [*_locust(TROUBLED, folder), "--processes", "2", "-H", server.url],
            check=True,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        )
    return RunFolder(folder / "run")


def _scenario(stage: Stage) -> Scenario:
    return Scenario(name="little", description="", kinds=KINDS, stages=(stage,))


def _locust(scenario: Scenario, folder: Path) -> list[str]:
    file = folder / "scenario.json"
    file.write_text(scenario.model_dump_json(), encoding="utf-8")
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary"]
    return [*command, "--scenario-json", str(file), "--output", str(folder / "run"), "--seed", "7", "--not-urgent"]


def _by_stage(run: RunFolder) -> dict[str, list[Record]]:
    by_stage = defaultdict(list)
    for record in run.records():
        by_stage[record.stage].append(record)
    return by_stage


def _assert_arrivals_are_sent_once_and_when_they_are_due(
    stage: StageInfo, records: list[Record], clocks_differ_by: float = 1e-5
) -> None:
    times = arrival_times(OPEN, seed=7)
    assert sorted(record.number for record in records) == list(range(len(times)))
    for record in records:
        assert record.scheduled == pytest.approx(stage.started + times[record.number], abs=clocks_differ_by)
        assert record.scheduled <= record.sent
        assert record.user is None


def test_every_arrival_is_sent_once_recorded_and_checked(
    searched: tuple[RunFolder, list[dict[str, object]]],
) -> None:
    run, bodies = searched
    sent = _by_stage(run)
    info = run.info()
    stages = {stage.name: stage for stage in info.stages}
    _assert_arrivals_are_sent_once_and_when_they_are_due(stages["open"], sent["open"])
    assert {record.user for record in sent["closed"]} == {0, 1}
    assert sorted(record.number for record in sent["closed"]) == list(range(len(sent["closed"])))
    assert all(record.scheduled == record.sent for record in sent["closed"])
    for record in run.records():
        assert record.outcome is Outcome.ANSWERED
        assert record.finished is not None
        assert record.scheduled <= record.sent < record.finished
        assert (record.source_tokens, record.target_tokens) == (3 * record.num_texts, 2 * record.num_texts)
        assert record.phases_ms == {"queue": 0.5, "decode": 1.5}
    # Once under load, and once for the answer check, whose sample contains all requests here.
    request = {stage: request_sequence(SEARCHED, 7, stage) for stage in sent}
    expected = Counter(request[record.stage](record.number).texts for record in run.records())
    asked = [body["text"] for body in bodies]
    assert Counter(tuple(text) if isinstance(text, list) else (text,) for text in asked) == expected + expected
    guard = run.answer_check()
    assert guard is not None
    assert guard.checked == guard.identical == guard.population == sum(map(len, sent.values()))


def test_a_run_records_its_circumstances(searched: tuple[RunFolder, list[dict[str, object]]]) -> None:
    run, _ = searched
    info = run.info()
    first, second = (next(stage for stage in info.stages if stage.name == name) for name in ("open", "closed"))
    assert (first.rate, first.users, second.rate, second.users) == (60, None, None, 2)
    assert first.warm_up_ended - first.started == pytest.approx(0.2)
    assert first.sending_ended - first.started == pytest.approx(1.0)
    assert first.drained <= second.started
    assert info.server.models == {"models": [{"name": "capitals"}]}
    assert info.generator.cpu_seconds > 0
    assert info.thresholds == THRESHOLDS
    assert not info.interrupted
    assert run.metrics()


def test_the_knee_is_searched_and_stages_are_shares_of_it(
    searched: tuple[RunFolder, list[dict[str, object]]],
) -> None:
    info = searched[0].info()
    assert info.knee == 80
    assert [(stage.rate, stage.is_search_step) for stage in info.stages] == [
        (40, True),
        (80, True),
        (60, False),
        (None, False),
        (40, False),
    ]
    assert info.scenario["stages"][2]["rate"] == 40  # type: ignore[index, call-overload]
    assert len({stage.name for stage in info.stages}) == 5


def test_two_workers_send_the_load_of_one(troubled: RunFolder) -> None:
    info = troubled.info()
    stage = info.stages[0]
    sent = _by_stage(troubled)
    # A worker that prepares for too long on a busy machine starts late, with all its arrivals.
    _assert_arrivals_are_sent_once_and_when_they_are_due(stage, sent["open"], clocks_differ_by=1.0)
    # Locust starts two; on a busy machine one may connect too late and has no part in the test.
    num_workers = info.generator.num_processes - 1
    assert num_workers in (1, 2)
    assert all(record.worker == record.number % num_workers for record in troubled.records())
    guard = troubled.answer_check()
    assert guard is not None
    answered = [record for record in troubled.records() if record.outcome is Outcome.ANSWERED]
    assert guard.identical == guard.population == len(answered) == len(sent["open"]) - len(TROUBLES)


def test_every_end_of_a_request_has_its_outcome(troubled: RunFolder) -> None:
    ends = {
        record.number: (record.outcome, record.reason)
        for record in _by_stage(troubled)["open"]
        if record.outcome is not Outcome.ANSWERED
    }
    assert ends == {
        4: (Outcome.REJECTED, "HTTP 429"),
        5: (Outcome.REJECTED, "HTTP 503"),
        6: (Outcome.TIMED_OUT, "HTTP 504"),
        7: (Outcome.FAILED, "HTTP 500"),
        8: (Outcome.FAILED, "answer is not JSON"),
        9: (Outcome.FAILED, "answer has 0 translations of 1 texts"),
        10: (Outcome.FAILED, "no answer: HTTPConnectionClosed"),
    }
    assert [record.retry_after for record in troubled.records() if record.status == 429] == [2.0]
    for record in troubled.records():
        assert (record.answer_sha256 is None) == (record.outcome is not Outcome.ANSWERED)
        assert record.source_tokens_estimated == (record.outcome is not Outcome.ANSWERED)


def test_arrivals_do_not_wait_for_a_slow_server_and_impatient_clients_disconnect(troubled: RunFolder) -> None:
    records = _by_stage(troubled)["slow"]
    assert len(records) == 30
    # No request was answered before the last was sent.
    assert min(r.finished for r in records if r.kind == "patient" and r.finished) > max(r.sent for r in records)
    for record in records:
        assert record.outcome is (Outcome.HUNG_UP if record.kind == "impatient" else Outcome.FAILED)
        if record.kind == "impatient":
            assert record.finished is not None
            assert 0.05 <= record.finished - record.sent < 0.7


def test_a_run_that_cannot_start_fails_with_one_sentence(tmp_path: Path) -> None:
    with answering() as server:
        gone = server.url
    # The scenario has a search but does not need it.
    own_rate = SEARCHED.model_copy(update={"stages": (OPEN.model_copy(update={"seconds": 0.3}),)})
    with pytest.raises(LoadTestFailed, match="answered no request: no connection: ConnectionRefusedError"):
        run_scenario(gone, own_rate, tmp_path / "gone", OPTIONS)
    with pytest.raises(LoadTestFailed, match="already contains a run"):  # the failed one
        run_scenario(gone, _scenario(OPEN), tmp_path / "gone", OPTIONS)
    with pytest.raises(ScenarioInvalid, match="--knee"):
        run_scenario(gone, _scenario(Stage(name="half", rate="0.5 knee", seconds=1)), tmp_path / "half", OPTIONS)
    with pytest.raises(LoadTestFailed, match=r"is unreachable: all \d+ requests failed, no connection: ConnectionRef"):
        run_scenario(gone, SEARCHED, tmp_path / "unreachable", OPTIONS)
    assert [stage.name for stage in RunFolder(tmp_path / "unreachable").info().stages] == ["search 1: 40/s"]
    own = _scenario(OPEN).with_overrides(corpus="no-such-file.txt")
    with pytest.raises(ScenarioInvalid, match=r"no-such-file\.txt"):
        run_scenario(gone, own, tmp_path / "corpus", OPTIONS)
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:8000"):
        run_scenario("ftp://host", _scenario(OPEN), tmp_path / "none", OPTIONS)
