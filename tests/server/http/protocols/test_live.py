import json
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from starlette.testclient import TestClient, WebSocketDenialResponse, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from server.http.app import create_app
from server.live.session import committed_text
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.settings import Settings

LIVE = "/v1/live?source=en&target=de"
MAX_SESSIONS = 4


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """A client of a server with the model that comes along."""
    settings = Settings(max_live_sessions=MAX_SESSIONS, threads=1, engine_processes=False)
    with TestClient(create_app(settings), headers={"Origin": "http://testserver"}) as client:
        yield client


@contextmanager
def _left(client: TestClient, path: str = LIVE) -> Iterator[WebSocketTestSession]:
    """Open a session that its client leaves. The test client cancels the application then."""
    with suppress(CancelledError), client.websocket_connect(path) as socket:
        yield socket


def _until(socket: WebSocketTestSession, key: str) -> list[dict[str, object]]:
    """Return events up to the first that has this key."""
    events: list[dict[str, object]] = []
    while not events or key not in events[-1]:
        events.append(socket.receive_json())
    return events


def _committed(events: list[dict[str, object]]) -> str:
    return "".join(map(committed_text, events))


def test_text_that_grows_is_translated_over_a_websocket(client: TestClient) -> None:
    with client.websocket_connect(LIVE) as socket:
        opened = socket.receive_json()["session"]
        assert (opened["source"], opened["target"], opened["model"]) == ("en", "de", "en-de")
        for word in ("Good", "morning.", "Where", "is", "the"):
            socket.send_json({"append": f"{word} "})
        socket.send_json({"replace_from": 22, "text": "the station?", "end": True})
        events = _until(socket, "end")
        committed = _committed(events)
        assert committed.startswith("Guten Morgen. Wo ist ")  # the words behind it are the model's
        assert committed.endswith("?")  # which only the replaced text has
        assert events[-1] == {"end": "final"}
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        assert closed.value.code == 1000


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("nonsense", "a message must be a JSON object"),
        ("[" * 100_000, "a message must be a JSON object"),
        ('{"apend": "x"}', "`apend` is not a field of this request"),
        ('{"text": "x"}', "`text` needs `replace_from`"),
        ('{"replace_from": 99, "text": "x"}', "`replace_from` must be from 0 to 0"),
    ],
)
def test_a_message_that_is_not_valid_is_answered_and_the_session_goes_on(
    message: str, problem: str, client: TestClient
) -> None:
    with client.websocket_connect(LIVE) as socket:
        socket.receive_json()
        socket.send_text(message)
        assert problem in socket.receive_json()["error"]["message"]
        socket.send_json({"append": "Thank you.", "end": True})
        assert _committed(_until(socket, "end")) == "Vielen Dank."


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/v1/live?source=en&target=fr", {}, 422, "unsupported_language_pair"),
        ("/v1/live?policy=eager", {}, 422, "invalid_request"),
        ("/v1/live?frame=-1", {}, 422, "invalid_request"),
        (LIVE, {"Origin": "http://elsewhere.example"}, 403, "forbidden"),
    ],
)
def test_a_handshake_is_refused_as_a_request_is(
    path: str, headers: dict[str, str], status: int, code: str, client: TestClient
) -> None:
    with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect(path, headers=headers):
        pass
    assert refused.value.status_code == status
    assert refused.value.json()["error"]["code"] == code


def test_simple_clients_send_requests_and_read_events(client: TestClient) -> None:
    opened = client.post(LIVE)
    assert opened.status_code == 201
    path = f"/v1/live/{opened.json()['id']}"
    assert opened.headers["location"] == path.removeprefix("/v1/")
    assert client.post(path, json={"append": "Good morning. Where is"}).status_code == 204
    assert client.post(path, json={"replace_from": 999, "text": "x"}).status_code == 422
    assert client.post(path, json={"append": " the station?"}).status_code == 204
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(client.get, path, headers={"Last-Event-ID": "0"})
        while not reading.running():
            pass
        server = client.app.state.server  # type: ignore[attr-defined]
        while not server.num_in_flight:  # until it reads
            pass
        assert client.delete(path).status_code == 204
        answer = reading.result()
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = answer.text.splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert _committed(events) == "Guten Morgen. Wo ist der Bahnhof?"
    assert events[-1] == {"end": "final"}
    assert [line for line in lines if line.startswith("id: ")]
    assert client.post(path, json={"append": "x"}).status_code == 404


def test_sessions_are_bounded_and_a_closed_socket_makes_room(client: TestClient) -> None:
    with _left(client) as first, _left(client) as second:
        first.receive_json()
        second.receive_json()
        refused = client.post(LIVE)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
        assert b"kvasir_live_sessions 2.0" in client.get("/metrics").content
    with _left(client) as third:
        third.receive_json()


def test_with_api_keys_a_session_needs_one_and_is_charged(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.sqlite")
    key, text = keys.add("team", KeyLimits(characters_per_day=20))
    settings = Settings(api_keys=tmp_path / "keys.sqlite", threads=1, engine_processes=False)
    with TestClient(create_app(settings)) as client:
        with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect(LIVE):
            pass
        assert refused.value.status_code == 401
        with _left(client, f"{LIVE}&api_key={text}") as socket:
            session = socket.receive_json()["session"]
            socket.send_json({"append": "Good morning. "})
            _until(socket, "committed")
            socket.send_json({"append": "Where is the station?"})
            [*_, refusal] = _until(socket, "error")
            assert refusal["error"]["code"] == "text_too_long"  # type: ignore[index]
            assert client.get(f"/v1/live/{session['id']}").status_code == 401
        usage = client.app.state.server.key_gate.usage(key)  # type: ignore[attr-defined]
        assert (usage.requests, usage.characters) == (1, 14)


def test_a_draining_server_commits_what_its_sessions_have(client: TestClient) -> None:
    server = client.app.state.server  # type: ignore[attr-defined]
    with client.websocket_connect(LIVE) as socket:
        socket.receive_json()
        socket.send_json({"append": "Good morning"})
        _until(socket, "committed")
        client.portal.call(server.live.end_all, "draining")  # type: ignore[union-attr]
        events = _until(socket, "end")
        assert _committed(events) == "Guten Morgen"
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        assert closed.value.code == 1012
