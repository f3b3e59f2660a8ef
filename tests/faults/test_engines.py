"""Engines that hang, die, or find other files than at their start, in a running server."""

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from bundle.manifest import SOURCE_SENTENCEPIECE_FILE
from server.operations.defaults import DEFAULT_MODEL
from tests.end_to_end.servers import Served, started, until
from tests.faults.engine_storm import engines_of

TEXT = {"text": "The old man sat at the window and looked at the rain. " * 20, "beam_size": 4}


@dataclass
class Engines:
    """A server with two engines, and the folder of its model."""

    served: Served
    folder: Path

    def pids(self) -> list[int]:
        """Return the processes of the engines, the oldest first."""
        return [each.pid for each in engines_of(self.served)]

    def logged(self, message: str) -> int:
        """Return how often a message was logged."""
        return sum(line["message"] == message for line in self.served.lines)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    folder = tmp_path_factory.mktemp("models") / "en-de"
    shutil.copytree(DEFAULT_MODEL, folder)
    flags = ("--replicas", "2", "--threads", "2", "--engine-processes", "true", "--heartbeat-limit-seconds", "3")
    for served in started("--model", str(folder), "--cache-sentences", "0", "--max-queue-seconds", "3600", *flags):
        yield Engines(served, folder)


@pytest.fixture
def client(engines: Engines) -> Iterator[httpx2.Client]:
    with engines.served.client() as client:
        until(lambda: len(engines.pids()) == 2 and client.post("/v1/translate", json=TEXT).status_code == 200)
        yield client


def test_a_hung_engine_is_killed_and_its_requests_are_decoded_elsewhere(
    engines: Engines, client: httpx2.Client
) -> None:
    [hung, other], statuses, expected = engines.pids(), [], client.post("/v1/translate", json=TEXT).json()
    answers: list[object] = []

    def ask() -> None:
        answer = client.post("/v1/translate", json=TEXT)
        statuses.append(answer.status_code)
        answers.append(answer.json())

    asking = [threading.Thread(target=ask) for _ in range(8)]
    for each in asking:
        each.start()
    os.kill(hung, signal.SIGSTOP)
    for each in asking:
        each.join()
    assert statuses == [200] * 8
    assert all(answer == expected for answer in answers)
    until(lambda: engines.logged("worker process killed") == 1 and len(engines.pids()) == 2)
    assert hung not in engines.pids()
    assert other in engines.pids()


@pytest.mark.parametrize("kind", ["weights that are gone", "another tokenizer"])
def test_without_its_files_no_engine_starts_and_requests_are_answered_at_once(
    engines: Engines, client: httpx2.Client, kind: str
) -> None:
    """An engine that starts again loads only the files of the start of the server."""
    weights = kind == "weights that are gone"
    file = next(engines.folder.glob("*.onnx")) if weights else engines.folder / SOURCE_SENTENCEPIECE_FILE
    content = file.read_bytes()
    if weights:
        file.unlink()
    else:
        file.write_bytes(bytes(len(content)))
    for pid in engines.pids():
        os.kill(pid, signal.SIGKILL)
    until(lambda: client.get("/health/ready").json() == {"status": "no_engine"})
    answer = client.post("/v1/translate", json=TEXT)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_engine")
    assert int(answer.headers["Retry-After"]) >= 1
    assert client.get("/health/live").status_code == 200
    file.write_bytes(content)
    until(lambda: client.post("/v1/translate", json=TEXT).status_code == 200)
