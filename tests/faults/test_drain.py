"""SIGTERM: documents are waited for, counted, and logged if they are lost; clients fetch those that are done."""

import contextlib
import signal
import threading
import time
from pathlib import Path

import httpx2
import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started

LINES = "".join(f"The house number {number} is old and we want to buy it.\n" for number in range(200)).encode()


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


def test_translated_documents_can_be_fetched_until_the_server_ends() -> None:
    for served in started("--threads", "1", "--log-format", "json"):
        with served.client() as client:
            paths = []
            for number in range(4):
                answer = client.post("/v1/documents", files={"file": (f"{number}.txt", f"House {number}.".encode())})
                assert answer.status_code == 202
                paths.append(answer.headers["Location"])
            give_up = time.monotonic() + PATIENCE_SECONDS
            while {client.get(path).json()["status"] for path in paths} != {"done"}:
                assert time.monotonic() < give_up
            served.process.send_signal(signal.SIGTERM)
            while client.get("/health/ready").status_code != 503:
                assert time.monotonic() < give_up
            for path in paths:  # slower than a drain without documents takes
                time.sleep(0.3)
                assert client.get(path).json()["status"] == "done"
                assert client.get(f"{path}/content").status_code == 200
        assert served.process.wait(PATIENCE_SECONDS) == 0
    [drained] = [line for line in served.lines if line["message"] == "drained"]
    assert [drained[name] for name in ("lost", "lost_documents", "unfetched_documents")] == [0, 0, 0]


def test_refusals_and_questions_during_a_drain_are_no_lost_requests() -> None:
    outcomes: list[int] = []

    def ask_until_refused(served: Served) -> None:
        with served.client() as client, contextlib.suppress(httpx2.TransportError):
            while True:
                outcomes.append(client.get("/v1/models").status_code)

    for served in started("--threads", "1"):
        clients = [threading.Thread(target=ask_until_refused, args=(served,)) for _ in range(8)]
        for client in clients:
            client.start()
        while len(outcomes) < 100:
            time.sleep(0.01)
        served.process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(PATIENCE_SECONDS)
        assert served.process.wait(PATIENCE_SECONDS) == 0
    assert set(outcomes) <= {200, 503}
