"""SIGTERM: documents are waited for, counted, and logged if they are lost; no new connection is reset."""

import signal
import ssl
import threading
import time
from pathlib import Path

import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started
from tests.faults.raw_requests import CERTIFICATE, exchange, open_socket

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


def _outcome(served: Served) -> str:
    """Send one request on a connection of its own."""
    try:
        answer = exchange(served, b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    except (ConnectionRefusedError, FileNotFoundError):
        return "refused"
    except (ConnectionError, ssl.SSLError) as error:
        return type(error).__name__
    return answer.split()[1].decode() if answer else "closed"


@pytest.mark.parametrize(
    "flags",
    [(), ("--tls-certificate", str(CERTIFICATE)), ("--unix-socket", "{folder}/kvasir.sock")],
    ids=["plain", "tls", "unix"],
)
def test_no_connection_is_reset_at_the_end_of_the_drain(flags: tuple[str, ...], tmp_path: Path) -> None:
    outcomes: list[str] = []

    def send_until_refused(served: Served) -> None:
        while not outcomes or outcomes[-1] != "refused":
            outcomes.append(_outcome(served))

    for served in started("--threads", "1", *(flag.format(folder=tmp_path) for flag in flags)):
        handshake = open_socket(served)  # never finished
        clients = [threading.Thread(target=send_until_refused, args=(served,)) for _ in range(8)]
        for client in clients:
            client.start()
        while len(outcomes) < 100:
            time.sleep(0.01)
        served.process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(PATIENCE_SECONDS)
        assert served.process.wait(PATIENCE_SECONDS) == 0
        handshake.close()
    assert not list(tmp_path.iterdir())
    assert set(outcomes) <= {"200", "503", "refused"}, outcomes
