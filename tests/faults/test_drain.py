"""SIGTERM while documents are translated: they are waited for, counted, and logged if they are lost."""

import signal
import time
from pathlib import Path

import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, started

LINES = "".join(f"The house number {number} is old and we want to buy it.\n" for number in range(400)).encode()


@pytest.mark.parametrize(("seconds", "lost"), [("60", 0), ("0.5", 1)])
def test_documents_in_work_are_finished_or_counted_as_lost(tmp_path: Path, seconds: str, lost: int) -> None:
    flags = ("--drain-timeout-seconds", seconds, "--documents-folder", str(tmp_path), "--threads", "1")
    for served in started(*flags, "--log-format", "json"):
        with served.client() as client:
            answer = client.post("/v1/documents", files={"file": ("a.txt", LINES)})
            assert answer.status_code == 202
            path = answer.headers["Location"]
            give_up = time.monotonic() + PATIENCE_SECONDS
            while not client.get(path).json()["units_done"]:
                assert time.monotonic() < give_up
                time.sleep(0.02)
            served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(PATIENCE_SECONDS) == min(lost, 1)
    [drained] = [line for line in served.lines if line["message"] == "drained"]
    assert drained["lost_documents"] == lost
    assert not list(tmp_path.iterdir())
