"""Models of a running server, changed under load: no request fails, and memory returns."""

import itertools
import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from server.operations.defaults import DEFAULT_MODEL
from tests.end_to_end.servers import PATIENCE_SECONDS, ROOT, Served, relabelled, started, until

_TEXT = "Where is the station? We met at noon near the old bridge."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two bundles."""
    made: Path = tmp_path_factory.mktemp("served")
    for pair in (("en", "de"), ("de", "en")):
        relabelled(made, *pair)
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    yield from started("--model", str(folder), "--admin-port", "0", "--cache-sentences", "0", "--threads", "1")


@pytest.fixture
def admin(server: Served) -> Iterator[httpx2.Client]:
    [line] = [line for line in server.lines if line["message"] == "listening for administration"]
    with httpx2.Client(base_url=str(line["url"]), timeout=PATIENCE_SECONDS) as client:
        yield client


@contextmanager
def _load(server: Served) -> Iterator[list[int]]:
    """Translate with two clients without a pause; the list receives the status of every answer."""
    statuses: list[int] = []
    has_ended = threading.Event()

    def ask(number: int) -> None:
        with server.client() as client:
            for round_ in itertools.count():
                if has_ended.is_set():
                    return
                text = f"{_TEXT} {number} and {round_}."
                statuses.append(client.post("/v1/translate", json={"text": text, "target": "de"}).status_code)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(statuses) > 4)
        yield statuses
        num_before = len(statuses)
        until(lambda: len(statuses) > num_before + 4)
    finally:
        has_ended.set()
        for thread in threads:
            thread.join()


def _memory(server: Served) -> int:
    """Return the private memory of the server and its processes, in bytes."""
    total, pids = 0, [server.process.pid]
    while pids:
        pid = pids.pop()
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                pids += map(int, children.read_text().split())
        except (OSError, ProcessLookupError):  # it has ended
            continue
        total += sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Private"))
    return total


def test_a_model_is_replaced_under_load_without_a_failed_request_and_its_memory_returns(
    server: Served, admin: httpx2.Client, tmp_path: Path
) -> None:
    newer = tmp_path / "newer"
    shutil.copytree(DEFAULT_MODEL, newer)
    before = _memory(server)
    with _load(server) as statuses:
        answers = [admin.post("/admin/models", json={"folder": str(each)}) for each in (newer, DEFAULT_MODEL)]
    assert set(statuses) == {200}
    assert [answer.json()["outcome"] for answer in answers] == ["replaced"] * 2
    assert set(answers[0].json()["seconds"]) == {"verify", "load", "drain"}
    # Two models of 60 MB were loaded besides.
    assert _memory(server) - before < 50e6


def test_a_signal_applies_what_the_folders_contain(server: Served, admin: httpx2.Client, folder: Path) -> None:
    relabelled(folder, "en", "fr")
    shutil.rmtree(folder / "de-en")
    with _load(server) as statuses:
        server.process.send_signal(signal.SIGHUP)
        until(lambda: any(line["message"] == "models compared with their folders" for line in server.lines))
    assert set(statuses) == {200}
    names = [model["name"] for model in admin.get("/admin/models").json()["models"]]
    assert sorted(names) == ["en-de", "en-fr"]
    with server.client() as client:
        assert client.post("/v1/translate", json={"text": _TEXT, "target": "fr"}).status_code == 200
        assert client.post("/v1/translate", json={"text": "Ja.", "source": "de", "target": "en"}).status_code == 422


def test_a_signal_during_the_start_does_not_end_the_server() -> None:
    command = [sys.executable, "-m", "kvasir", "serve", "--port", "0", "--threads", "1"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if json.loads(line)["message"] == "loading models":
                    process.send_signal(signal.SIGHUP)
                if json.loads(line)["message"] == "listening":
                    break
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            process.kill()


def test_an_unloaded_model_gives_its_memory_back_until_its_next_request(server: Served, admin: httpx2.Client) -> None:
    with server.client() as client:
        assert client.post("/v1/translate", json={"text": _TEXT, "target": "de"}).status_code == 200
        before = _memory(server)
        assert admin.post("/admin/models/en-de/unload").json() == {"unloaded": True}
        assert before - _memory(server) > 10e6
        [state] = [each for each in admin.get("/admin/models").json()["models"] if each["name"] == "en-de"]
        assert (state["is_loaded"], state["memory_bytes"]) == (False, 0)
        assert client.get("/health/ready").status_code == 200
        assert client.post("/v1/translate", json={"text": _TEXT, "target": "de"}).status_code == 200
