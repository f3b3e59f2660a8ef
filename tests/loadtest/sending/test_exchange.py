import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("trial", ["read_and_dropped", "crossed_the_close_of_an_idle_connection"])
def test_a_request_that_a_server_drops_has_failed_unless_it_crossed_the_close(trial: str) -> None:
    command = [sys.executable, "-m", "tests.loadtest.dropped_requests", trial]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
