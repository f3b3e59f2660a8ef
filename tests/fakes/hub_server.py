"""A server on loopback with the protocol of the Hugging Face hub, a CDN behind it, and plain files."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from huggingface_hub import close_session, constants

from model.checkpoints.download import download

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE_FILES = (".safetensors", ".bin", ".onnx", ".spm")  # stored with Git LFS, behind the CDN


@dataclass
class HubServer:
    """Content and faults of the server, and the requests that it received."""

    address: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    plain_files: dict[str, bytes] = field(default_factory=dict)
    licences: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    """Repositories that require a token; without it the hub hides them."""
    gated: set[str] = field(default_factory=set)
    bodies_to_cut: list[int] = field(default_factory=list)
    """Bytes after which the next bodies from the CDN or of plain files end."""
    is_without_ranges: bool = False
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def paths(self, method: str = "GET") -> list[str]:
        """Return the paths requested by a method, in order."""
        return [path for requested, path, _ in self.requests if requested == method]


@contextmanager
def hub_server() -> Iterator[HubServer]:
    """Serve on a free port until the end of the context."""
    state = HubServer()

    class Handler(_Handler):
        hub = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def using(server: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make this process use the server instead of the hub, with a cache in `folder` and without waits."""
    template = f"{server.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("model.checkpoints.hub.download", partial(download, wait=lambda _: None))
    close_session()  # the library's connections
    yield
    close_session()


def _is_large(name: str) -> bool:
    return name.endswith(LARGE_FILES)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._respond()

    def do_HEAD(self) -> None:
        self._respond()

    def log_message(self, *arguments: object) -> None:
        pass

    def _respond(self) -> None:
        path = urlsplit(self.path).path
        self.hub.requests.append((self.command, path, {name.title(): value for name, value in self.headers.items()}))
        parts = path.strip("/").split("/")
        if parts[0] == "cdn":
            self._send_blob(parts[1])
        elif path in self.hub.plain_files:
            content = self.hub.plain_files[path]
            self._send_ranged(content, f'"{_sha256(content)}"')
        elif parts[:2] == ["api", "models"]:
            self._send_api("/".join(parts[2:4]), parts[4:])
        elif len(parts) > 4 and parts[2] == "resolve":
            self._send_file("/".join(parts[:2]), "/".join(parts[4:]))
        else:
            self._send(404, b"not found")

    def _rejected(self, repository: str) -> bool:
        token = self.hub.tokens.get(repository)
        if repository not in self.hub.repositories:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif repository in self.hub.gated and self.headers.get("Authorization") != f"Bearer {token}":
            self._send(403, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        elif token is not None and self.headers.get("Authorization") != f"Bearer {token}":
            self._send(401, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        else:
            return False
        return True

    def _send_api(self, repository: str, rest: list[str]) -> None:
        # The hub lists a gated repository; only its files are restricted.
        if repository not in self.hub.gated and self._rejected(repository):
            return
        files = self.hub.repositories[repository]
        if rest[:1] == ["tree"]:
            entries = [
                {"type": "file", "path": name, "size": len(content), "oid": _git_hash(content)}
                | ({"lfs": self._lfs(content) | {"oid": _sha256(content)}} if _is_large(name) else {})
                for name, content in files.items()
            ]
            self._send(200, json.dumps(entries).encode())
            return
        siblings = [
            {"rfilename": name, "size": len(content), "blobId": _git_hash(content)}
            | ({"lfs": self._lfs(content) | {"sha256": _sha256(content)}} if _is_large(name) else {})
            for name, content in files.items()
        ]
        card = {"license": self.hub.licences[repository]} if repository in self.hub.licences else {}
        described = {"id": repository, "sha": COMMIT, "siblings": siblings, "cardData": card, "private": False}
        self._send(200, json.dumps(described).encode())

    @staticmethod
    def _lfs(content: bytes) -> dict[str, object]:
        return {"size": len(content), "pointerSize": 134}

    def _send_file(self, repository: str, name: str) -> None:
        if self._rejected(repository):
            return
        content = self.hub.repositories[repository].get(name)
        if content is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        elif _is_large(name):
            digest = _sha256(content)
            headers = {
                "X-Repo-Commit": COMMIT,
                "X-Linked-Etag": f'"{digest}"',
                "X-Linked-Size": str(len(content)),
                "Location": f"{self.hub.address.replace('127.0.0.1', 'localhost')}/cdn/{digest}",  # another host
            }
            self._send(302, b"", headers)
        else:
            self._send(200, content, {"X-Repo-Commit": COMMIT, "ETag": f'"{_git_hash(content)}"'})

    def _send_blob(self, digest: str) -> None:
        for files in self.hub.repositories.values():
            for content in files.values():
                if _sha256(content) == digest:
                    self._send_ranged(content, f'"{digest}"')
                    return
        self._send(404, b"")

    def _send_ranged(self, content: bytes, etag: str) -> None:
        span = self.headers.get("Range", "")
        condition = self.headers.get("If-Range")
        headers = {"ETag": etag, "Accept-Ranges": "bytes"}
        if span.startswith("bytes=") and not self.hub.is_without_ranges and condition in (None, etag):
            start, _, end = span.removeprefix("bytes=").partition("-")
            first, last = int(start), int(end) if end else len(content) - 1
            if first >= len(content):
                self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                return
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            self._send(206, content[first : last + 1], headers, may_be_cut=True)
        else:
            self._send(200, content, headers, may_be_cut=True)

    def _send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, *, may_be_cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if may_be_cut and self.hub.bodies_to_cut:
            self.wfile.write(body[: self.hub.bodies_to_cut.pop(0)])
            self.close_connection = True
            return
        self.wfile.write(body)
