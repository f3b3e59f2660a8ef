"""A server in a process of its own, for the time of a measurement."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

_START_SECONDS = 60.0


@contextmanager
def run_server(folder: Path, arguments: Callable[[int], Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Run Python in a checkout with these arguments for a free port; yield the port and the process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, *arguments(port)]
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
