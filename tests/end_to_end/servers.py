"""Servers as an operator starts them: a process and a port."""

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from bundle.manifest import MANIFEST_FILE
from server.operations.defaults import DEFAULT_MODEL

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_SECONDS = 300.0


@dataclass
class Served:
    """A server process and what it wrote to standard error."""

    process: subprocess.Popen[str]
    lines: list[dict[str, object]] = field(default_factory=list)
    listening: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def read_log(self) -> None:
        """Collect the log until the process ends."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(json.loads(line))
            if self.lines[-1]["message"] == "listening":
                self.url = str(self.lines[-1]["url"])
                self.listening.set()

    def client(self) -> httpx2.Client:
        """A client for this server."""
        return httpx2.Client(base_url=self.url, timeout=PATIENCE_SECONDS)


def relabelled(folder: Path, source: str, target: str) -> Path:
    """A bundle that says it translates from `source` to `target`; it is the default model all the same."""
    bundle = folder / f"{source}-{target}"
    bundle.mkdir()
    for path in DEFAULT_MODEL.iterdir():
        if path.name != MANIFEST_FILE:
            shutil.copy(path, bundle)
    manifest = json.loads((DEFAULT_MODEL / MANIFEST_FILE).read_text(encoding="utf-8"))
    manifest |= {"name": bundle.name, "source_languages": [source], "target_languages": [target]}
    (bundle / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    return bundle


def started(*flags: str, module: str = "kvasir", max_descriptors: int | None = None) -> Iterator[Served]:
    """A server with these flags; killed afterwards if it still runs. `module` is a program that runs `kvasir`."""
    limit = [] if max_descriptors is None else ["prlimit", f"--nofile={max_descriptors}:{max_descriptors}"]
    command = [*limit, sys.executable, "-m", module, "serve", "--port", "0", *flags]
    # A group of its own, as in a terminal: what Ctrl-C reaches.
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        served = Served(process)
        reader = threading.Thread(target=served.read_log)
        reader.start()
        try:
            assert served.listening.wait(PATIENCE_SECONDS), served.lines
            yield served
        finally:
            if process.poll() is None:
                process.kill()
            reader.join()


def until(condition: Callable[[], bool]) -> None:
    """Ask again and again, and leave the processor to the server in between."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def gauge(client: httpx2.Client, name: str) -> float:
    """Return the value of a metric of the server."""
    [line] = [line for line in client.get("/metrics").text.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


def num_cancelled(client: httpx2.Client) -> float:
    """Requests whose clients went away, so far."""
    counts = [line for line in client.get("/metrics").text.splitlines() if 'outcome="cancelled",status="499"' in line]
    return sum(float(line.split()[1]) for line in counts if line.startswith("kvasir_requests_total"))
