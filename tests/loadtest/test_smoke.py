"""A real server under a little of every load: behaviour is asserted, not speed."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtest.results.records import Outcome
from loadtest.results.run_folder import RunFolder
from loadtest.results.thresholds import ExitCode
from loadtest.workload.arrivals import arrival_times
from loadtest.workload.scenario import load_scenario
from tests.end_to_end.servers import ROOT, Served, gauge, started, until

SCENARIO = Path(__file__).with_name("smoke.toml")


@pytest.fixture
def alone() -> Iterator[Served]:
    """A server for this test alone."""
    # On a busy machine its queue may be slow for a while, which must not reject requests here.
    yield from started("--threads", "1", "--max-queue-seconds", "60")


def test_under_a_little_of_every_load_all_answers_are_those_of_the_idle_server(alone: Served, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kvasir", "loadtest", "--url", alone.url, "--scenario", str(SCENARIO)]
    command += ["--output", str(tmp_path / "run"), "--server-pid", str(alone.process.pid), "--no-urgent"]
    ran = subprocess.run([*command, "--max-error-ratio", "0"], cwd=ROOT, capture_output=True, text=True, check=False)
    # The generator may be late on a busy machine, which makes the run invalid.
    assert ran.returncode in (ExitCode.FINE, ExitCode.INVALID), ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1].startswith(f"exit {ran.returncode}: ")

    folder = RunFolder(tmp_path / "run")
    records, info, guard = list(folder.records()), folder.info(), folder.answer_check()
    scenario = load_scenario(SCENARIO)
    num_arrivals = len(arrival_times(scenario.stages[0], seed=1))
    assert sorted(r.number for r in records if r.stage == "open") == list(range(num_arrivals))
    outcomes = Counter((record.kind, record.outcome) for record in records)
    assert set(outcomes) <= {(kind.name, Outcome.ANSWERED) for kind in scenario.kinds} | {
        ("impatient", Outcome.HUNG_UP)
    }
    assert all(outcomes[kind.name, Outcome.ANSWERED] for kind in scenario.kinds if not kind.hang_up_after)
    assert outcomes["impatient", Outcome.HUNG_UP]

    for record in records:
        if record.outcome is Outcome.ANSWERED:
            assert record.finished is not None
            assert record.scheduled <= record.sent < record.finished
            assert {"tokenize", "queue", "encode", "decode"} <= set(record.phases_ms)
            assert record.answer_sha256
            assert record.source_tokens_estimated == (record.protocol in ("libretranslate", "deepl"))
            assert (record.first_event is not None) == (record.protocol == "stream")

    protocols = {record.protocol for record in records if record.outcome is Outcome.ANSWERED}
    assert protocols == {"native", "stream", "libretranslate", "deepl"}
    assert {record.beam_size for record in records} == {None, 1, 3}
    assert any(record.num_texts > 1 and record.protocol == "native" for record in records)

    assert guard is not None
    assert guard.different == ()
    assert guard.checked == guard.identical == guard.population == sum(r.outcome is Outcome.ANSWERED for r in records)
    assert info.server.cpu_seconds
    assert info.server.models
    assert any(sample.metrics.get("kvasir_step_rows_sum") for sample in folder.metrics())
    assert all((folder.path / name).stat().st_size for name in ("totals.json", "report.html", "report.md"))
    with alone.client() as client:
        until(lambda: gauge(client, "kvasir_requests_running") == 0)
