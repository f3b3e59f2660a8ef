"""Changes of models under attack: storms of signals, hostile folders, and the end of the server in a change."""

import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from bundle.manifest import MANIFEST_FILE
from server.operations.defaults import DEFAULT_MODEL
from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started

COMPARED = "models compared with their folders"
NUM_SIGNALS = 60


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for all tests; the last one ends it."""
    folder = tmp_path_factory.mktemp("models") / "served"
    shutil.copytree(DEFAULT_MODEL, folder)
    flags = ("--admin-port", "0", "--cache-sentences", "0", "--threads", "1", "--max-queue-seconds", "60")
    yield from started("--model", str(folder), *flags, "--log-format", "json")


@pytest.fixture
def admin(served: Served) -> Iterator[httpx2.Client]:
    [line] = [line for line in served.lines if line["message"] == "listening for administration"]
    with httpx2.Client(base_url=str(line["url"]), timeout=PATIENCE_SECONDS) as client:
        yield client


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A copy of the model, to be served instead."""
    newer = tmp_path / "newer"
    shutil.copytree(DEFAULT_MODEL, newer)
    return newer


def _logged(served: Served, message: str) -> int:
    return sum(line["message"] == message for line in served.lines)


def test_a_storm_of_signals_fails_no_request(served: Served, admin: httpx2.Client, newer: Path) -> None:
    """Every signal was a comparison, and each one switched to the bundle of the settings and back."""
    assert admin.post("/admin/models", json={"folder": str(newer)}).json()["outcome"] == "replaced"
    good = (newer / MANIFEST_FILE).read_bytes()
    statuses: Counter[int] = Counter()
    has_ended = threading.Event()

    def ask() -> None:
        with served.client() as client:
            while not has_ended.wait(0.02):
                statuses[client.post("/v1/translate", json={"text": "We met at noon."}).status_code] += 1

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for number in range(NUM_SIGNALS):
            if number % 10 in (0, 5):
                (newer / MANIFEST_FILE).write_bytes(b"{broken" if number % 10 == 0 else good)
            served.process.send_signal(signal.SIGHUP)
            time.sleep(0.02)
        answer = admin.post("/admin/models/reload")  # waits for those before
    finally:
        has_ended.set()
        asking.join()
    assert [change["outcome"] for change in answer.json()["changes"]] == ["unchanged"]
    assert set(statuses) == {200}
    assert _logged(served, "model changed") == 1
    assert _logged(served, COMPARED) < NUM_SIGNALS
    [model] = admin.get("/admin/models").json()["models"]
    assert model["folder"] == str(newer)


def test_a_pipe_in_a_folder_stops_no_later_change(admin: httpx2.Client, newer: Path) -> None:
    (newer / "README.md").unlink()
    os.mkfifo(newer / "README.md")
    answer = admin.post("/admin/models", json={"folder": str(newer)})
    assert answer.status_code == 422
    assert "neither a file nor a folder" in answer.json()["error"]["message"]
    (newer / "README.md").unlink()
    assert admin.post("/admin/models", json={"folder": str(newer)}).json()["outcome"] == "replaced"


def test_the_end_of_the_server_rejects_a_change_that_runs(served: Served, admin: httpx2.Client, newer: Path) -> None:
    """It was answered by a bare 500, with a traceback in the log."""
    answers: list[httpx2.Response] = []
    num_lines = len(served.lines)
    changing = threading.Thread(target=lambda: answers.append(admin.post("/admin/models", json={"folder": str(newer)})))
    changing.start()
    time.sleep(0.1)  # the change takes about a second
    served.process.send_signal(signal.SIGTERM)
    served.process.send_signal(signal.SIGHUP)
    changing.join()
    assert served.process.wait(PATIENCE_SECONDS) == 0
    assert answers[0].status_code == 503
    assert answers[0].json()["error"]["code"] == "draining"
    assert not [line for line in served.lines[num_lines:] if line["level"] in ("WARNING", "ERROR")]
