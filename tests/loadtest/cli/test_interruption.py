"""Interruption of `kvasir loadtest`."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from loadtest.results.records import Outcome
from loadtest.results.run_folder import RunFolder
from tests.loadtest.answering import Reply, answering

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 300
ENDLESS = """
name = "endless"
description = ""
[[kinds]]
name = "sentence"
[[stages]]
name = "first"
rate = 50
seconds = 3600
warm_up_seconds = 0.1
[[stages]]
name = "second"
rate = 1
seconds = 1
"""


def _ended_by(end: Callable[[psutil.Process], None], folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Return the process and the output of a `kvasir loadtest` that was ended at the server's twentieth request."""
    scenario = folder / "endless.toml"
    scenario.write_text(ENDLESS, encoding="utf-8")
    started: list[subprocess.Popen[str]] = []

    def script(texts: list[str], number: int) -> Reply | None:
        if number == 20:
            end(psutil.Process(started[0].pid))
        return None

    with answering(script) as server:
        command = [sys.executable, "-m", "kvasir", "loadtest", "--url", server.url, "--scenario", str(scenario)]
        command += ["--output", str(folder / "run"), "--no-urgent"]
        # Tests in the background of a shell ignore Ctrl-C, and so would this process.
        own_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            process = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, start_new_session=True)
        finally:
            signal.signal(signal.SIGINT, own_handler)
        started.append(process)
        printed, _ = process.communicate(timeout=PATIENCE_SECONDS)
    return started[0], printed


@pytest.mark.parametrize(
    "end",
    [
        lambda process: process.send_signal(signal.SIGTERM),
        lambda process: os.killpg(process.pid, signal.SIGINT),  # as a terminal does
    ],
    ids=["SIGTERM", "Ctrl-C"],
)
def test_an_interrupted_load_test_reports_its_measurements(
    end: Callable[[psutil.Process], None], tmp_path: Path
) -> None:
    process, printed = _ended_by(end, tmp_path)
    assert process.returncode == 4
    assert "the run was interrupted before second" in printed.splitlines()[-1]
    records = list(RunFolder(tmp_path / "run").records())
    assert len(records) > 20
    assert all(record.outcome is Outcome.ANSWERED for record in records)


def test_no_process_keeps_sending_after_a_load_test_was_killed(tmp_path: Path) -> None:
    children: list[psutil.Process] = []

    def end(process: psutil.Process) -> None:
        children.extend(process.children())
        process.kill()

    process, _ = _ended_by(end, tmp_path)
    assert process.returncode == -signal.SIGKILL
    assert len(children) == 1
    _, alive = psutil.wait_procs(children, timeout=60)
    assert all(child.status() == psutil.STATUS_ZOMBIE for child in alive)
