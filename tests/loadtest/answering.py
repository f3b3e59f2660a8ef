"""A small server for the native protocol that answers in capitals or as its script requires."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol


@dataclass(frozen=True)
class Reply:
    """A scripted response to one request."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    after_seconds: float = 0.0
    hangs_up: bool = False


class Script(Protocol):
    def __call__(self, texts: list[str], number: int) -> Reply | None: ...


def _nothing_special(texts: list[str], number: int) -> Reply | None:
    return None


class Answering(ThreadingHTTPServer):
    """The server. It stores request bodies in `bodies` and serves `/metrics` and `/v1/models`."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.lock = threading.Lock()
        self.bodies: list[dict[str, object]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes, and the second must not wait for an ACK
    server: Answering

    def do_GET(self) -> None:
        metrics = b'# HELP x\nkvasir_requests_waiting 3.0\nkvasir_requests_total{outcome="ok",status="200"} 7\n'
        known = {"/metrics": metrics, "/v1/models": b'{"models": [{"name": "capitals"}]}'}
        self._reply(Reply(200 if self.path in known else 404, known.get(self.path, b"")))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            number = len(self.server.bodies)
            self.server.bodies.append({"path": self.path, "cache": self.headers["Cache-Control"], **body})
        texts = [body["text"]] if isinstance(body["text"], str) else body["text"]
        answer = {"translations": [{"text": text.upper(), "source_tokens": 3, "target_tokens": 2} for text in texts]}
        plain = Reply(body=json.dumps(answer).encode(), headers={"Server-Timing": "queue;dur=0.5, decode;dur=1.5"})
        self._reply(self.server.script(texts, number) or plain)

    def _reply(self, reply: Reply) -> None:
        time.sleep(reply.after_seconds)
        if reply.hangs_up:
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class'
        pass


@contextmanager
def answering(script: Script = _nothing_special) -> Iterator[Answering]:
    """Run a server inside the block."""
    with Answering(script) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
