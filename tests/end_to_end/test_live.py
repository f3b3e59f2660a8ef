"""Live sessions of a real server: its connections, its shutdown, and the death of an engine."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.sync.connection import Connection

from server.live.session import committed_text
from tests.end_to_end.servers import PATIENCE_SECONDS, Served, gauge, started, until

HANDSHAKE = (
    b"GET /v1/live?source=en&target=de HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\r\n"
)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server with one engine, in a process."""
    yield from started("--threads", "1", "--engine-processes", "true")


def _opened(served: Served) -> ClientConnection:
    connection = connect(
        f"{served.url.replace('http', 'ws', 1)}/v1/live?source=en&target=de", open_timeout=PATIENCE_SECONDS
    )
    assert "session" in json.loads(connection.recv(PATIENCE_SECONDS))
    return connection


def _until_end(connection: Connection) -> tuple[str, object]:
    """Return all that is committed, and the reason of the end."""
    text = ""
    while True:
        event = json.loads(connection.recv(PATIENCE_SECONDS))
        text += committed_text(event)
        if "end" in event:
            return text, event["end"]


def test_what_is_sent_along_with_the_handshake_is_not_lost(served: Served) -> None:
    host, port = served.url.removeprefix("http://").split(":")
    text = json.dumps({"append": "Good morning. " + "\n" * 19_000, "end": True}).encode()  # of several reads
    frame = b"\x81\xfe" + len(text).to_bytes(2, "big") + bytes(4) + text
    with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as raw:
        raw.sendall(HANDSHAKE + frame)
        received = b""
        while b'"end"' not in received:
            received += raw.recv(65536)
    assert received.startswith(b"HTTP/1.1 101")
    assert b"Guten Morgen." in received


def test_a_message_above_the_limit_ends_its_session_alone(served: Served) -> None:
    with _opened(served) as other, _opened(served) as connection:
        connection.send("x" * 1_000_000)
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(PATIENCE_SECONDS)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
        other.send(json.dumps({"append": "Thank you.", "end": True}))
        assert _until_end(other) == ("Vielen Dank.", "final")
    with served.client() as client:
        until(lambda: gauge(client, "kvasir_live_sessions") == 0)


def test_a_session_survives_the_death_of_the_engine(served: Served) -> None:
    with _opened(served) as connection:
        connection.send(json.dumps({"append": "Good morning. Where is "}))
        connection.recv(PATIENCE_SECONDS)
        children = subprocess.run(
            ["pgrep", "-P", str(served.process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        connection.send(json.dumps({"append": "the station?", "end": True}))
        text, reason = _until_end(connection)
        assert "Wo ist der Bahnhof?" in text
        assert reason == "final"


def test_a_server_that_stops_commits_what_its_sessions_have() -> None:
    for served in started("--threads", "1"):
        with _opened(served) as connection:
            connection.send(json.dumps({"append": "Good morning"}))
            connection.recv(PATIENCE_SECONDS)
            served.process.send_signal(signal.SIGTERM)
            assert _until_end(connection) == ("Guten Morgen", "draining")
            with pytest.raises(ConnectionClosed) as closed:
                connection.recv(PATIENCE_SECONDS)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
        assert served.process.wait(PATIENCE_SECONDS) == 0
