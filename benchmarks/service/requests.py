"""Requests a second of one server process, and its processor time for each, by protocol."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from benchmarks.machine import process_seconds
from benchmarks.paths import ROOT

_TEXT = "The old man sat at the window and looked at the rain."
_START_SECONDS = 60.0


def bodies(source: str, target: str) -> Mapping[str, tuple[str, dict[str, object]]]:
    """Return path and body of a request of each protocol."""
    return {
        "native": ("/v1/translate", {"text": _TEXT, "source": source, "target": target}),
        "LibreTranslate": ("/translate", {"q": _TEXT, "source": source, "target": target}),
        "DeepL": ("/v2/translate", {"text": [_TEXT], "source_lang": source.upper(), "target_lang": target.upper()}),
    }


def request_table(bundle: Path, source: str, target: str, seconds: float, connections: int) -> str:
    """Return a table with a row for each protocol."""
    rows = ["| protocol | requests/s | us of the server's processor a request |", "|---|---|---|"]
    with _server(bundle) as (port, pid):
        for protocol, (path, body) in bodies(source, target).items():
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            content = json.dumps(body).encode()
            request = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
            asyncio.run(_load(port, request, 0.5, connections))
            before = process_seconds(pid)
            num_requests = asyncio.run(_load(port, request, seconds, connections))
            spent = process_seconds(pid) - before
            rows.append(f"| {protocol} | {num_requests / seconds:.0f} | {spent / num_requests * 1e6:.0f} |")
    return "\n".join(rows)


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
def _server(bundle: Path) -> Iterator[tuple[int, int]]:
    """Run the server; yield its port and process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.service.echo_server", str(port), str(bundle)]
    with TemporaryFile() as log, subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log) as process:  # noqa: S603 - ours
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
