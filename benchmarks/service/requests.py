"""Requests a second of one server process, and its processor time for each, by protocol."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import NamedTuple

from benchmarks.paths import ROOT

_TEXT = "The old man sat at the window and looked at the rain."
_START_SECONDS = 60.0
_ROUNDS = 15
SIMULATED_CORES = (1, 2, 16, 64)
SENTENCE_SECONDS = 0.005  # of one core, about as long as a greedy sentence of the default model
_CONNECTIONS_PER_CORE = 2  # so that no core waits for the next request


def bodies(source: str, target: str) -> Mapping[str, tuple[str, dict[str, object]]]:
    """Return path and body of a request of each protocol."""
    return {
        "native": ("/v1/translate", {"text": _TEXT, "source": source, "target": target}),
        "LibreTranslate": ("/translate", {"q": _TEXT, "source": source, "target": target}),
        "DeepL": ("/v2/translate", {"text": [_TEXT], "source_lang": source.upper(), "target_lang": target.upper()}),
    }


def request_table(
    bundle: Path, source: str, target: str, seconds: float, connections: int, against: Path | None = None
) -> str:
    """Return a table with a row for each protocol.

    With `against`, the folder of another checkout, its server is measured in turn with ours, several times, and the
    table has the medians and the ratios of both.
    """
    columns = ["protocol", "requests/s", "us of the server's processor a request"]
    columns += ["requests/s / other", "us / other"] if against else []
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    with ExitStack() as stack:
        folders = [ROOT] if against is None else [ROOT, against]
        servers = [stack.enter_context(_server(folder, bundle)) for folder in folders]
        for protocol, (path, body) in bodies(source, target).items():
            samples: list[list[_Sample]] = [[] for _ in servers]
            for port, _ in servers:
                asyncio.run(_load(port, _request(port, path, body), 0.5, connections))
            for _ in range(_ROUNDS if against else 1):
                for (port, pid), taken in zip(servers, samples, strict=True):
                    request, before = _request(port, path, body), _processor_seconds(pid)
                    part = seconds / _ROUNDS if against else seconds
                    num_requests = asyncio.run(_load(port, request, part, connections))
                    taken.append(_Sample(num_requests / part, (_processor_seconds(pid) - before) / num_requests * 1e6))
            own = samples[0]
            cells = [
                f"{median(each.per_second for each in own):.0f}",
                f"{median(each.microseconds for each in own):.0f}",
            ]
            if against:
                pairs = list(zip(own, samples[1], strict=True))
                cells.append(f"{median(one.per_second / other.per_second for one, other in pairs):.2f}")
                cells.append(f"{median(one.microseconds / other.microseconds for one, other in pairs):.2f}")
            rows.append(f"| {' | '.join((protocol, *cells))} |")
    return "\n".join(rows)


def scaling_table(
    bundle: Path, source: str, target: str, seconds: float, cores: Sequence[int] = SIMULATED_CORES
) -> str:
    """Return a table of requests a second of one server process with engines on so many simulated cores.

    The rest of the server has a core of its own, as far as this machine has one.
    """
    rows = [
        "| cores of engines | they could do, requests/s | one server process does | us of its processor a request |"
    ]
    rows.append("|---|---|---|---|")
    path, body = bodies(source, target)["native"]
    for num_cores in cores:
        with _server(ROOT, bundle, str(num_cores), str(SENTENCE_SECONDS)) as (port, pid):
            request, connections = _request(port, path, body), _CONNECTIONS_PER_CORE * num_cores
            asyncio.run(_load(port, request, 0.5, connections))
            before = _processor_seconds(pid)
            num_requests = asyncio.run(_load(port, request, seconds, connections))
            microseconds = (_processor_seconds(pid) - before) / num_requests * 1e6
        possible = num_cores / SENTENCE_SECONDS
        share = num_requests / seconds / possible
        rows.append(
            f"| {num_cores} | {possible:.0f} | {num_requests / seconds:.0f} ({share:.0%}) | {microseconds:.0f} |"
        )
    return "\n".join(rows)


class _Sample(NamedTuple):
    """Requests a second, and processor time for each."""

    per_second: float
    microseconds: float


def _request(port: int, path: str, body: Mapping[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process; unlike `process_seconds` not in steps of 10 ms."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text("ascii").split()[0]) for each in threads) / 1e9


async def _load(port: int, request: bytes, seconds: float, connections: int) -> int:
    """Send the request on all connections, one after the other on each; return the number of answers."""
    give_up = time.monotonic() + seconds

    async def send() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        num_answers = 0
        while time.monotonic() < give_up:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head.decode()
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            num_answers += 1
        writer.close()
        return num_answers

    return sum(await asyncio.gather(*(send() for _ in range(connections))))


@contextmanager
def _server(folder: Path, bundle: Path, *arguments: str) -> Iterator[tuple[int, int]]:
    """Run the server of a checkout; yield its port and process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.service.echo_server", str(port), str(bundle), *arguments]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    with (
        TemporaryFile() as log,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log) as process,  # noqa: S603 - ours
    ):
        try:
            give_up = time.monotonic() + _START_SECONDS
            while not _accepts(port):
                if process.poll() is not None or time.monotonic() > give_up:
                    log.seek(0)
                    raise RuntimeError(f"the server did not start: {log.read().decode()[-500:]}")
                time.sleep(0.1)
            yield port, process.pid
        finally:
            process.kill()


def _accepts(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
