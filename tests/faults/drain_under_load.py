"""SIGTERM while requests and documents are in work: every one that was accepted is answered.

`python -m tests.faults.drain_under_load` sends `--requests` requests from fifty clients and four documents, and SIGTERM
after a third of the answers. It exits with 1 if a request was lost: reset, cut off or answered by 500, or if a document
was.
"""

import argparse
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started

_CLIENTS = 50
_DOCUMENTS = 4
_LINES = "".join(f"The house number {number} is old and we want to buy it.\n" for number in range(100)).encode()
_NOT_LOST = ("200", "429", "503", "refused")


class _Load:
    """Clients that each send their share of the requests, one after the other."""

    def __init__(self, url: str, num_requests: int) -> None:
        self._url = url
        self._num_requests = num_requests
        self.outcomes: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(_CLIENTS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _send(self, first: int) -> None:
        with httpx2.Client(base_url=self._url, timeout=2 * PATIENCE_SECONDS) as client:
            for number in range(first, self._num_requests, _CLIENTS):
                text = f"My brother bought {number} books about old ships."
                try:
                    answer = client.post("/v1/translate", json={"text": text})
                    is_whole = answer.status_code != 200 or bool(answer.json()["translations"][0]["text"])
                    self.outcomes[str(answer.status_code) if is_whole else "cut off"] += 1
                except httpx2.ConnectError:
                    self.outcomes["refused"] += 1
                except httpx2.TransportError as error:
                    self.outcomes[type(error).__name__] += 1


def _upload(served: Served) -> None:
    with served.client() as client:
        for number in range(_DOCUMENTS):
            answer = client.post("/v1/documents", files={"file": (f"{number}.txt", _LINES + str(number).encode())})
            assert answer.status_code == 202, answer.text


def run(num_requests: int, folder: Path) -> tuple[Counter[str], int, int]:
    """Return the outcomes of the requests, the lost documents, and the exit status of the server."""
    flags = ("--documents-folder", str(folder), "--drain-timeout-seconds", "120", "--log-format", "json")
    for served in started(*flags):
        _upload(served)
        load = _Load(served.url, num_requests)
        load.start()
        while load.outcomes.total() < num_requests // 3:
            time.sleep(0.01)
        served.process.send_signal(signal.SIGTERM)
        load.join()
        status = served.process.wait(3 * PATIENCE_SECONDS)
    [drained] = [line for line in served.lines if line["message"] == "drained"]
    return load.outcomes, int(str(drained["lost_documents"])), status


def main() -> int:
    """Run the check as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        outcomes, num_lost, status = run(options.requests, Path(folder))
    sys.stdout.write(f"{dict(outcomes)}, {num_lost} of {_DOCUMENTS} documents lost, exit status {status}\n")
    lost = {outcome: number for outcome, number in outcomes.items() if outcome not in _NOT_LOST}
    return int(bool(lost) or num_lost > 0 or status != 0)


if __name__ == "__main__":
    raise SystemExit(main())
