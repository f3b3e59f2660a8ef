"""SIGTERM while a thousand requests and four documents are in work: every one that was accepted is answered.

`python -m tests.faults.drain_under_load` sends `--requests` requests at once, and documents, and SIGTERM while all of
them run or wait. Others follow the signal. It exits with 1 unless all requests before the signal are translated, all
requests after it are rejected by 503 or refused within a second, and no document is lost.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, gauge, started

_DOCUMENTS = 4
_LATE_REQUESTS = 100
_LINES = "".join(f"The house number {number} is old and we want to buy it.\n" for number in range(100)).encode()
_MAX_REJECTION_SECONDS = 1.0
_DRAIN_SECONDS = 120
_OPENING_SECONDS = 1.0
_TEXT = (
    "My brother bought {} books about the ships that the old man in our street had built for his children, and he "
    "wanted to read all of them before the winter ended, because his friends had talked about nothing else for weeks."
)


@dataclass
class Report:
    """Outcomes of the requests before SIGTERM and after it, and what the server wrote about its end."""

    num_unanswered: int = 0  # when SIGTERM was sent
    early: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    slowest_rejection: float = 0.0
    drain_seconds: float = 0.0
    num_lost_documents: int = 0
    exit_status: int = 0

    def has_lost(self) -> bool:
        """Return whether anything that was accepted was lost, or anything else was answered late."""
        return (
            bool(self.early.keys() - {"200"})
            or bool(self.late.keys() - {"503", "refused"})
            or self.slowest_rejection > _MAX_REJECTION_SECONDS
            or self.num_lost_documents > 0
            or self.exit_status != 0
        )


def _num_sentences(client: httpx2.Client) -> float:
    """Return how many sentences run or wait: one for each request."""
    return gauge(client, "kvasir_requests_running") + gauge(client, "kvasir_requests_waiting")


async def _send(client: httpx2.AsyncClient, text: str) -> str:
    try:
        answer = await client.post("/v1/translate", json={"text": text})
    except httpx2.ConnectError:
        return "refused"
    except httpx2.TransportError as error:
        return type(error).__name__
    is_whole = answer.status_code != 200 or bool(answer.json()["translations"][0]["text"])
    return str(answer.status_code) if is_whole else "cut off"


async def _send_early(url: str, may_send: asyncio.Event, number: int) -> str:
    """Send a request on a connection of its own, once all others are open."""
    address = httpx2.URL(url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    await may_send.wait()
    body = json.dumps({"text": _TEXT.format(number), "beam_size": 2}).encode()
    head = f"POST /v1/translate HTTP/1.1\r\nHost: {address.host}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        writer.write(head.encode() + body)
        answer = await reader.read()
    except OSError as error:
        return type(error).__name__
    finally:
        writer.close()
    status, _, content = answer.partition(b"\r\n")
    is_whole = not status.endswith(b" 200 OK") or b"translations" in content
    return status.split()[1].decode() if status and is_whole else "cut off"


async def _run(served: Served, num_requests: int) -> Report:
    report = Report()
    limits = httpx2.Limits(max_connections=num_requests + _LATE_REQUESTS)
    timeout = httpx2.Timeout(_DRAIN_SECONDS + PATIENCE_SECONDS)
    async with httpx2.AsyncClient(base_url=served.url, timeout=timeout, limits=limits) as client:
        may_send = asyncio.Event()
        early = [asyncio.create_task(_send_early(served.url, may_send, number)) for number in range(num_requests)]
        await asyncio.sleep(_OPENING_SECONDS)
        may_send.set()
        num_done = 0
        with served.client() as watching:
            while num_done + await asyncio.to_thread(_num_sentences, watching) < num_requests:
                await asyncio.sleep(0.05)
                num_done = sum(task.done() for task in early)
        report.num_unanswered = num_requests - num_done
        begun = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.2)
        for number in range(_LATE_REQUESTS):
            sent = time.monotonic()
            report.late[await _send(client, f"The ship {number} is late.")] += 1
            report.slowest_rejection = max(report.slowest_rejection, time.monotonic() - sent)
        report.early.update(await asyncio.gather(*early))
        report.drain_seconds = time.monotonic() - begun
    return report


def run(num_requests: int, folder: Path) -> Report:
    """Return what became of the requests and documents."""
    flags = ("--documents-folder", str(folder), "--drain-timeout-seconds", str(_DRAIN_SECONDS))
    # Queues without a limit of time: by default, requests that would wait receive 429 and are not accepted.
    unlimited = ("--max-queue-seconds", str(_DRAIN_SECONDS), "--request-timeout-seconds", str(_DRAIN_SECONDS))
    for served in started(*flags, *unlimited, "--log-format", "json"):
        with served.client() as client:
            for number in range(_DOCUMENTS):
                content = _LINES + str(number).encode()
                answer = client.post("/v1/documents", files={"file": (f"{number}.txt", content)})
                assert answer.status_code == 202, answer.text
        report = asyncio.run(_run(served, num_requests))
        report.exit_status = served.process.wait(3 * PATIENCE_SECONDS)
    [drained] = [line for line in served.lines if line["message"] == "drained"]
    report.num_lost_documents = int(str(drained["lost_documents"]))
    return report


def main() -> int:
    """Run the check as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        report = run(options.requests, Path(folder))
    sys.stdout.write(f"{report}\n")
    return int(report.has_lost())


if __name__ == "__main__":
    raise SystemExit(main())
