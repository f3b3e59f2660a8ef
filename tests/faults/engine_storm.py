"""Engines that are killed again and again under load: requests that fail, and answers that differ.

`python -m tests.faults.engine_storm` starts a server with two engines and eight clients, kills one engine after the
other `--kills` times, and exits with 1 if a request got a 5xx or another translation than before.
"""

import argparse
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import httpx2
import psutil

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started

_CLIENTS = 8
_TEXTS = [f"The house number {number} is old and we want to buy it." for number in range(60)]
_NO_CACHE = {"Cache-Control": "no-cache"}


@dataclass(slots=True)
class _Load:
    """Requests of some clients until `is_over`, and what became of them."""

    url: str
    expected: dict[str, str]
    is_over: threading.Event = field(default_factory=threading.Event)
    statuses: Counter[int] = field(default_factory=Counter)
    num_wrong: int = 0

    def send(self, first: int) -> None:
        """Send one text after the other."""
        number = first
        with httpx2.Client(base_url=self.url, timeout=PATIENCE_SECONDS, headers=_NO_CACHE) as client:
            while not self.is_over.is_set():
                number += 1
                text = _TEXTS[number % len(_TEXTS)]
                answer = client.post("/v1/translate", json={"text": text})
                self.statuses[answer.status_code] += 1
                self.num_wrong += answer.status_code == 200 and _translation(answer) != self.expected[text]


def _translation(answer: httpx2.Response) -> str:
    return str(answer.json()["translations"][0]["text"])


def engines_of(served: Served) -> list[psutil.Process]:
    """Return the worker processes, the oldest first."""
    server = psutil.Process(served.process.pid)
    workers = []
    for each in server.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # or a zombie
            if each.ppid() != server.pid:  # a child of the process that forks them
                workers.append((each.create_time(), each))
    return [worker for _, worker in sorted(workers, key=lambda each: each[0])]


def storm(num_kills: int) -> tuple[Counter[int], int]:
    """Return the statuses of all requests, and the number of wrong answers."""
    for served in started("--replicas", "2", "--threads", "2", "--log-format", "json"):
        with served.client() as client:
            expected = {text: _translation(client.post("/v1/translate", json={"text": text})) for text in _TEXTS}
        load = _Load(served.url, expected)
        clients = [threading.Thread(target=load.send, args=(7 * number,)) for number in range(_CLIENTS)]
        for each in clients:
            each.start()
        try:
            for _ in range(num_kills):
                _wait_for_two(served)
                engines_of(served)[0].kill()
                time.sleep(0.2)
            _wait_for_two(served)
        finally:
            load.is_over.set()
            for each in clients:
                each.join()
        return load.statuses, load.num_wrong
    raise AssertionError("the server did not start")


def _wait_for_two(served: Served) -> None:
    """Wait until as many engines were restarted as were killed."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        messages = Counter(line["message"] for line in served.lines)
        if messages["worker process restarted"] == messages["worker process exited"] and len(engines_of(served)) == 2:
            return
        time.sleep(0.1)
    raise AssertionError("an engine was not restarted")


def main() -> int:
    """Run the storm as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    statuses, num_wrong = storm(options.kills)
    sys.stdout.write(f"{options.kills} kills: {dict(statuses)}, {num_wrong} other translations\n")
    return int(num_wrong > 0 or any(status >= 500 for status in statuses))


if __name__ == "__main__":
    raise SystemExit(main())
