"""API keys attacked from outside: by strangers without one, by damage of the file, and by `kill -9`."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from server.operations.api_keys.key_file import KeyFile, KeyLimits
from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started, until
from tests.fakes.collector import Collector, collecting
from tests.faults.raw_requests import connect

TEXT = {"text": "Tea.", "source": "en", "target": "de"}
MAX_DOCUMENTS = 6


@dataclass
class Keyed:
    """A server, its file of keys and the path of it, one key, and the collector of its traces."""

    served: Served
    path: Path
    file: KeyFile
    key: str
    traces: Collector

    @property
    def headers(self) -> dict[str, str]:
        """The head of a request with the key."""
        return {"Authorization": f"Bearer {self.key}"}

    def client(self) -> httpx2.Client:
        """A client with the key."""
        return httpx2.Client(base_url=self.served.url, timeout=PATIENCE_SECONDS, headers=self.headers)


@contextlib.contextmanager
def _started(path: Path) -> Iterator[Keyed]:
    file = KeyFile(path)
    _, key = file.add("honest", KeyLimits())
    flags = ("--api-keys", str(path), "--threads", "1", "--max-documents", str(MAX_DOCUMENTS), "--log-level", "debug")
    with collecting() as traces:
        for served in started(*flags, "--log-format", "json", "--trace-endpoint", traces.url):
            yield Keyed(served, path, file, key, traces)
            served.process.terminate()  # a killed process leaves half a line
            served.process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    """A server for all tests that do not kill theirs; the last one ends it."""
    with _started(tmp_path_factory.mktemp("keys") / "keys.sqlite") as keyed:
        yield keyed


def _upload(client: httpx2.Client) -> httpx2.Response:
    return client.post("/v1/documents", files={"file": ("a.txt", b"Good morning.")}, data={"target": "de"})


@pytest.mark.parametrize("path", ["/v2/document", "/translate_file"])
def test_uploads_without_a_key_take_no_place_of_documents(keyed: Keyed, path: str) -> None:
    """Forms may have the key in them. Those of strangers displaced finished documents, and kept others out."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        "Content-Length: 1000000\r\n\r\n--x\r\n"
    )
    strangers: list[socket.socket] = []
    with keyed.client() as client:
        kept = [_upload(client).headers["Location"] for _ in range(MAX_DOCUMENTS - 1)]
        until(lambda: all(client.get(each).json()["status"] == "done" for each in kept))
        try:
            for _ in range(2 * MAX_DOCUMENTS):
                strangers.append(connect(keyed.served))
                strangers[-1].sendall(head.encode())
            rejected = [each for each in strangers[4:] if each.recv(12) == b"HTTP/1.1 429"]
            assert len(rejected) == len(strangers) - 4
            assert _upload(client).status_code == 202
            assert [client.get(each).status_code for each in kept] == [200] * len(kept)
        finally:
            for each in strangers:
                each.close()
        until(lambda: httpx2.post(keyed.served.url + path, files={"file": b"x"}).status_code != 429)


def test_a_file_of_keys_that_is_taken_away_and_put_back_fails_no_request(keyed: Keyed, tmp_path: Path) -> None:
    path = keyed.path
    revoked, key = keyed.file.add("revoked", KeyLimits())
    messages = (
        "file of API keys cannot be used; its keys stay as they were",
        "file of API keys is usable again",
    )

    def has_logged(message: str) -> bool:
        assert client.post("/v1/translate", json=TEXT).status_code == 200
        return any(line["message"] == message for line in keyed.served.lines)

    with keyed.client() as client:
        client.headers["Authorization"] = f"Bearer {key}"
        until(lambda: client.post("/v1/translate", json=TEXT).status_code == 200)
        content, kept = path.read_bytes(), tmp_path / "kept"
        path.rename(kept)
        until(lambda: has_logged(messages[0]))
        kept.rename(path)
        until(lambda: has_logged(messages[1]))
        keyed.served.lines.clear()
        path.write_bytes(b"no database " * 1000)
        until(lambda: has_logged(messages[0]))
        path.write_bytes(content)
        until(lambda: has_logged(messages[1]))
        keyed.file.revoke(revoked.id)
        until(lambda: client.post("/v1/translate", json=TEXT).status_code == 401)


def test_usage_survives_the_end_of_the_process(tmp_path: Path) -> None:
    with _started(tmp_path / "keys.sqlite") as keyed:
        with keyed.client() as client:
            for _ in range(10):
                assert client.post("/v1/translate", json=TEXT).status_code == 200
            time.sleep(2.5)  # it is written every second
        keyed.served.process.kill()
        keyed.served.process.wait(PATIENCE_SECONDS)
    [usage] = keyed.file.usage().values()
    assert (usage.requests, usage.characters) == (10, 40)


def test_no_key_is_in_a_log_line_a_trace_or_a_metric(keyed: Keyed) -> None:
    """However it is sent: the right one and a wrong one, where it belongs and where not."""
    wrong = keyed.key[:-8] + "WRONG-ab"
    bodies = TEXT | {"q": "Tea.", "target_lang": "DE", "from": "en", "to": "de"}
    names = ("Authorization", "X-API-Token", "X-Request-ID", "Ocp-Apim-Subscription-Key", "User-Agent", "Cookie")
    with httpx2.Client(base_url=keyed.served.url, timeout=PATIENCE_SECONDS) as client:
        paths = [path.replace("{", "").replace("}", "") for path in client.get("/openapi.json").json()["paths"]]
        for key in (keyed.key, wrong):
            parameters = dict.fromkeys(("api_key", "auth_key", "token", "key"), key)
            for path in [*paths, f"/{key}/translate", f"/v1/{key}", f"/v1/documents/{key}"]:
                answers = [
                    client.post(path, params=parameters, json=bodies | parameters),
                    client.post(path, json=bodies, headers=dict.fromkeys(names, f"Bearer {key}")),
                    client.post(path, json=bodies, headers=dict.fromkeys(names, key)),
                    client.post(path, data=parameters | {"x": key}),
                    client.post(path, content=quote(key), headers={"Content-Type": "application/json"}),
                    client.get(path, params=parameters, headers={"X-Request-ID": key}),
                ]
                assert max(answer.status_code for answer in answers) < 500
        metrics = client.get("/metrics").text
    keyed.served.process.terminate()
    assert keyed.served.process.wait(PATIENCE_SECONDS) == 0
    assert len(keyed.traces.spans) > len(paths)
    everything = metrics + json.dumps(keyed.served.lines) + str(keyed.traces.spans)
    assert f"kvasir-{next(iter(keyed.file.all()))}-..." in everything, "the test sends keys that are logged"
    for key in (keyed.key, wrong):
        assert key.split("-", 2)[2] not in everything
