import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from loadtest.arrivals import arrival_times
from loadtest.records import Outcome
from loadtest.requests import request_sequence
from loadtest.run import LOCUSTFILE, LoadTestFailed, RunOptions, run_scenario
from loadtest.run_folder import RunFolder
from loadtest.scenario import Kind, Scenario, ScenarioInvalid, Search, Stage
from loadtest.thresholds import Thresholds
from tests.loadtest.answering import Reply, answering

OPTIONS = RunOptions(seed=7, guard_requests=100_000, urgent=False, quiet=True)
KINDS = (Kind(name="sentence", weight=3), Kind(name="list", text="list"), Kind(name="beam", beam_size=4))
OPEN = Stage(name="open", rate=60, seconds=1.0, warm_up_seconds=0.2)
THRESHOLDS = Thresholds(max_p95_ms=250.0, max_error_ratio=0.0)
PATIENCE_SECONDS = 600


def _scenario(*stages: Stage, kinds: tuple[Kind, ...] = KINDS, search: Search | None = None) -> Scenario:
    return Scenario(name="little", description="", kinds=kinds, stages=stages, search=search)


def test_every_arrival_is_sent_once_recorded_and_checked(tmp_path: Path) -> None:
    scenario = _scenario(OPEN, Stage(name="closed", users=2, seconds=0.4))
    with answering() as server:
        folder = run_scenario(server.url, scenario, tmp_path / "run", replace(OPTIONS, thresholds=THRESHOLDS))
    records = list(folder.records())
    sent = {stage: [record for record in records if record.stage == stage] for stage in ("open", "closed")}
    times = arrival_times(OPEN, seed=7)
    assert sorted(record.number for record in sent["open"]) == list(range(len(times)))
    info = folder.info()
    first, second = info.stages
    for record in sent["open"]:
        assert record.scheduled == pytest.approx(first.started + times[record.number], abs=1e-5)
        assert record.user is None
    assert {record.user for record in sent["closed"]} == {0, 1}
    assert sorted(record.number % 2 for record in sent["closed"] if record.user == 1)[:1] == [1]
    assert all(record.scheduled == record.sent for record in sent["closed"])
    for record in records:
        assert record.outcome is Outcome.ANSWERED
        assert record.finished is not None
        assert record.scheduled <= record.sent < record.finished
        assert (record.source_tokens, record.target_tokens) == (3 * record.num_texts, 2 * record.num_texts)
        assert record.phases_ms == {"queue": 0.5, "decode": 1.5}
    # Once under load, and once alone for the guard, which may take all of them here.
    request = {stage: request_sequence(scenario, 7, stage) for stage in sent}
    expected = Counter(request[record.stage](record.number).texts for record in records)
    asked = [body["text"] for body in server.bodies]
    assert Counter(tuple(text) if isinstance(text, list) else (text,) for text in asked) == expected + expected
    guard = folder.guard()
    assert guard is not None
    assert guard.checked == guard.identical == guard.population == len(records)
    assert (first.rate, first.users, second.rate, second.users) == (60, None, None, 2)
    assert first.warm_up_ended - first.started == pytest.approx(0.2)
    assert first.sending_ended - first.started == pytest.approx(1.0)
    assert first.drained <= second.started
    assert info.server.models == {"models": [{"name": "capitals"}]}
    assert info.generator.cpu_seconds > 0
    assert folder.metrics()
    assert info.thresholds == THRESHOLDS


def test_every_end_of_a_request_has_its_name(tmp_path: Path) -> None:
    script = {
        4: Reply(429, headers={"Retry-After": "2"}),
        5: Reply(503),
        6: Reply(504),
        7: Reply(500),
        8: Reply(body=b"no"),
        9: Reply(body=b'{"translations": []}'),
        10: Reply(hangs_up=True),
    }
    kinds = (Kind(name="sentence"),)
    with answering(lambda texts, number: script.get(number)) as server:
        folder = run_scenario(server.url, _scenario(OPEN, kinds=kinds), tmp_path / "run", OPTIONS)
    records = list(folder.records())
    others = Counter((record.outcome, record.reason) for record in records if record.outcome is not Outcome.ANSWERED)
    # On a connection that had been used the request is sent once more, and then answered.
    others.pop((Outcome.FAILED, "no answer: HTTPConnectionClosed"), None)
    assert others == {
        (Outcome.REJECTED, "HTTP 429"): 1,
        (Outcome.REJECTED, "HTTP 503"): 1,
        (Outcome.TIMED_OUT, "HTTP 504"): 1,
        (Outcome.FAILED, "HTTP 500"): 1,
        (Outcome.FAILED, "answer is not JSON"): 1,
        (Outcome.FAILED, "answer has 0 translations of 1 texts"): 1,
    }
    assert [record.retry_after for record in records if record.status == 429] == [2.0]
    assert all(record.answer_sha256 is None for record in records if record.outcome is not Outcome.ANSWERED)


def test_arrivals_do_not_wait_for_a_slow_server_and_impatient_clients_go_away(tmp_path: Path) -> None:
    stage = Stage(name="open", rate=50, seconds=0.6, arrivals="constant")
    kinds = (Kind(name="impatient", hang_up_after=(0.05, 0.1)), Kind(name="patient"))
    with answering(lambda texts, number: Reply(body=b"{}", after_seconds=0.8)) as server, pytest.raises(LoadTestFailed):
        run_scenario(server.url, _scenario(stage, kinds=kinds), tmp_path / "run", OPTIONS)
    records = list(RunFolder(tmp_path / "run").records())
    assert len(records) == 30
    # None was answered before the last was sent.
    assert min(r.finished for r in records if r.kind == "patient" and r.finished) > max(r.sent for r in records)
    for record in records:
        assert record.outcome is (Outcome.HUNG_UP if record.kind == "impatient" else Outcome.FAILED)
        if record.kind == "impatient":
            assert record.finished is not None
            assert 0.05 <= record.finished - record.sent < 0.7


def test_the_knee_is_searched_and_stages_are_shares_of_it(tmp_path: Path) -> None:
    settings = Search(start_rate=40, factor=2, bisections=0, seconds=0.5, warm_up_seconds=0.0, max_rate=80)
    scenario = _scenario(Stage(name="half", rate="0.5 knee", seconds=0.3), search=settings)
    with answering() as server:
        folder = run_scenario(server.url, scenario, tmp_path / "run", OPTIONS)
    info = folder.info()
    assert info.knee == 80
    assert [(stage.rate, stage.is_search_step) for stage in info.stages] == [(40, True), (80, True), (40, False)]
    assert info.scenario["stages"][0]["rate"] == 40  # type: ignore[index, call-overload]
    assert len({stage.name for stage in info.stages}) == 3


def test_two_workers_send_what_one_would(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text(_scenario(OPEN).model_dump_json(), encoding="utf-8")
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "locust",
        "-f",
        str(LOCUSTFILE),
        "--headless",
        "--only-summary",
        "--processes",
        "2",
    ]
    command += ["--scenario-json", str(scenario), "--out", str(out), "--seed", "7", "--not-urgent"]
    with answering() as server:
        subprocess.run([*command, "-H", server.url], check=True, capture_output=True, timeout=PATIENCE_SECONDS)
    folder = RunFolder(out)
    records = list(folder.records())
    times = arrival_times(OPEN, seed=7)
    assert sorted(record.number for record in records) == list(range(len(times)))
    info = folder.info()
    # Locust starts two; one that a busy machine keeps from a sign of life when the test begins has no part in it.
    num_workers = info.generator.num_processes - 1
    assert num_workers in (1, 2)
    assert all(record.worker == record.number % num_workers for record in records)
    [stage] = info.stages
    # Nobody can ask another process for the time and know to the microsecond what it said.
    assert 1e-6 < stage.clock_uncertainty < 0.1
    assert all(record.scheduled == pytest.approx(stage.started + times[record.number], abs=1e-5) for record in records)
    guard = folder.guard()
    assert guard is not None
    assert guard.identical == guard.population == len(records)


def test_a_test_that_is_interrupted_keeps_what_it_has_measured(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    endless = _scenario(Stage(name="endless", rate=50, seconds=3600, warm_up_seconds=0.1))
    scenario.write_text(endless.model_dump_json(), encoding="utf-8")
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary"]
    command += ["--scenario-json", str(scenario), "--out", str(tmp_path / "run"), "--not-urgent"]
    processes: list[subprocess.Popen[bytes]] = []

    def interrupt(texts: list[str], number: int) -> Reply | None:
        if number == 20:
            processes[0].send_signal(signal.SIGINT)
        return None

    with (
        answering(interrupt) as server,
        subprocess.Popen([*command, "-H", server.url], stdout=subprocess.DEVNULL) as process,
    ):
        processes.append(process)
        process.wait(PATIENCE_SECONDS)
    records = list(RunFolder(tmp_path / "run").records())
    assert len(records) == len(server.bodies) > 20
    assert all(record.outcome is Outcome.ANSWERED for record in records)
    [stage] = RunFolder(tmp_path / "run").info().stages
    assert stage.sending_ended - stage.started < 600


def test_what_cannot_be_run_is_told_in_one_sentence(tmp_path: Path) -> None:
    with answering() as server:
        gone = server.url
    with pytest.raises(LoadTestFailed, match="answered nothing: no answer: ConnectionRefusedError"):
        run_scenario(gone, _scenario(OPEN.model_copy(update={"seconds": 0.3})), tmp_path / "gone", OPTIONS)
    with pytest.raises(LoadTestFailed, match="holds a run already"):  # the failed one is kept, too
        run_scenario(gone, _scenario(OPEN), tmp_path / "gone", OPTIONS)
    with pytest.raises(ScenarioInvalid, match="--knee"):
        run_scenario(gone, _scenario(Stage(name="half", rate="0.5 knee", seconds=1)), tmp_path / "half", OPTIONS)
    own = _scenario(OPEN).with_overrides(corpus="no-such-file.txt")
    with pytest.raises(ScenarioInvalid, match=r"no-such-file\.txt"):
        run_scenario(gone, own, tmp_path / "corpus", OPTIONS)
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:8000"):
        run_scenario("ftp://host", _scenario(OPEN), tmp_path / "none", OPTIONS)
