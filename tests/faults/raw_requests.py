"""Requests as bytes, for those that no HTTP client sends."""

import contextlib
import socket
import ssl
from pathlib import Path

from tests.end_to_end.servers import PATIENCE_SECONDS, ROOT, Served

PROBE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
CERTIFICATE = ROOT / "tests/server/cli/tls_old.pem"  # self-signed, for tests only
_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_TLS.check_hostname, _TLS.verify_mode = False, ssl.CERT_NONE


def open_socket(served: Served) -> socket.socket:
    """Open a connection to a server, without a TLS handshake."""
    if served.url.startswith("unix:"):
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        opened.settimeout(PATIENCE_SECONDS)
        try:
            opened.connect(served.url.removeprefix("unix:"))
        except OSError:
            opened.close()
            raise
        return opened
    host, port = served.url.rpartition("/")[2].split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)


def connect(served: Served) -> socket.socket:
    """Open a connection to a server, with TLS if the server has it, whatever its certificate is."""
    opened = open_socket(served)
    return _TLS.wrap_socket(opened) if served.url.startswith("https:") else opened


def read_all(connection: socket.socket) -> bytes:
    """Return everything that a server sends until it closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(1 << 16):
            received += chunk
    return received


def exchange(served: Served, request: bytes) -> bytes:
    """Send bytes on a connection of their own; return what the server sends."""
    with connect(served) as connection:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(request)
        return read_all(connection)


def closing(request: bytes) -> bytes:
    """Return a request whose connection ends with the response."""
    return request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)


def post(path: str, body: bytes, content_type: str, *headers: str) -> bytes:
    """Return a request whose connection ends with the response."""
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    )
    return "\r\n".join((*lines, "", "")).encode() + body


def resident_bytes(served: Served) -> int:
    """Return the resident memory of the server's first process."""
    status = Path(f"/proc/{served.process.pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))
