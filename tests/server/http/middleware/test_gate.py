"""What is decided before a body is received: heads, hosts, origins, turns, room, and the protocol of a shared path."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from bundle.loading import Bundle
from server.http.app import create_app
from server.http.middleware.gate import Admission, Arrival, Gate, ProtocolDispatch, Turns, Uploads, default_hosts
from server.http.protocols.registry import PROTOCOLS
from server.http.responses.errors import ErrorFormats
from server.http.state import RequestRecord, ServerState
from server.interface.errors import QueueFull
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator
from tests.fakes.event_loop import in_event_loop


async def _receive() -> Message:
    raise AssertionError("nothing is read at the gate")


def _arrival(path: str, method: str = "GET") -> Arrival:
    return Arrival({"type": "http", "method": method, "path": path}, _receive, (path,))


def _turns_of(*kinds: bool) -> list[tuple[str, int]]:
    """Begin probes (True) and other requests at once. Return each in the order of their turns, with its iteration."""

    async def run() -> list[tuple[str, int]]:
        loop, turns = asyncio.get_running_loop(), Turns()
        begun: list[tuple[str, int]] = []
        iteration = 0

        def count() -> None:
            nonlocal iteration
            iteration += 1
            loop.call_soon(count)

        async def arrive(name: str, path: str) -> None:
            waiting = turns(_arrival(path))
            if waiting is not None:
                await waiting
            begun.append((name, iteration))

        loop.call_soon(count)
        tasks = [
            asyncio.create_task(arrive(f"{'probe' if is_probe else 'request'} {number}", path))
            for number, is_probe in enumerate(kinds)
            for path in ["/health/live" if is_probe else "/v1/models"]
        ]
        await asyncio.gather(*tasks)
        return begun

    return asyncio.run(run())


def test_four_requests_begin_in_each_iteration_in_their_order() -> None:
    begun = _turns_of(*[False] * 10)
    assert [name for name, _ in begun] == [f"request {number}" for number in range(10)]
    assert max(Counter(iteration for _, iteration in begun).values()) == 4


def test_a_probe_does_not_wait_behind_requests() -> None:
    begun = dict(_turns_of(*[False] * 48, True, False))
    assert begun["probe 48"] == begun["request 0"]
    assert begun["request 47"] <= begun["request 49"]


@in_event_loop
async def test_a_request_whose_client_has_left_takes_no_turn() -> None:
    turns = Turns()
    waiting = [turn for turn in [turns(_arrival("/v1/models")) for _ in range(9)] if turn is not None]
    assert len(waiting) == 5
    for turn in waiting[:4]:
        assert isinstance(turn, asyncio.Future)
        turn.cancel()
    async with asyncio.timeout(60):
        await waiting[4]


LOCAL = ("localhost", "localhost:8000", "kvasir.localhost", "127.0.0.1:8000", "[::1]:8000", "192.0.2.7")
FOREIGN = ("attacker.example", "localhost.attacker.example", "127.0.0.1.attacker.example")
PAGE, EXTENSION = "https://page.example", "moz-extension://8bd2ee3c-8e1c-4d5b-9c2d-8a54cf1f5e5b"


def _statuses_of(client: TestClient, method: str, name: str, values: Sequence[str]) -> set[int]:
    path = "/v1/documents" if method == "POST" else "/v1/limits"
    return {client.request(method, path, headers={name: value}).status_code for value in values}


@pytest.mark.parametrize(
    ("settings", "accepted", "rejected"),
    [
        (Settings(), LOCAL, FOREIGN),
        (Settings(host="0.0.0.0"), LOCAL + FOREIGN, ()),
        (Settings(allowed_hosts=["*"]), FOREIGN, ()),
        (Settings(host="0.0.0.0", allowed_hosts=["kvasir.example"]), LOCAL, FOREIGN),
        (
            Settings(allowed_hosts=["kvasir.example", "*.wide.example"]),
            ("KVASIR.example:443", "deep.wide.example"),
            ("wide.example",),
        ),
    ],
    ids=["local", "open", "any", "named", "wild card"],
)
def test_names_of_a_server_are_local_or_those_of_the_setting(
    echo: EchoGenerator, settings: Settings, accepted: Sequence[str], rejected: Sequence[str]
) -> None:
    with TestClient(create_app(settings, [echo])) as client:
        assert _statuses_of(client, "GET", "host", accepted) == {200}
        assert _statuses_of(client, "GET", "host", rejected) <= {403}


def test_any_name_is_accepted_by_default_unless_the_address_is_local() -> None:
    assert [default_hosts(host) for host in ("127.0.0.1", "::1", "localhost")] == [[]] * 3
    assert [default_hosts(host) for host in ("0.0.0.0", "kvasir.lan")] == [["*"]] * 2


def test_foreign_pages_may_read_but_not_write(echo: EchoGenerator) -> None:
    foreign: list[dict[str, str]] = [
        {"origin": "http://attacker.example"},
        {"origin": "null"},
        {"origin": "http://testserver:8080"},
        {"origin": "http://testserver", "sec-fetch-site": "cross-site"},
        {"origin": "http://other.testserver", "sec-fetch-site": "same-site"},
    ]
    own: list[dict[str, str]] = [
        {},
        {"origin": "http://testserver"},
        {"origin": "https://behind.a.proxy", "sec-fetch-site": "same-origin"},
        {"origin": "chrome-extension://abc", "sec-fetch-site": "cross-site"},
    ]
    with TestClient(create_app(Settings(), [echo])) as client:
        for headers in foreign:
            assert client.post("/v1/documents", headers=headers).status_code == 403, headers
            assert client.get("/v1/limits", headers=headers).status_code == 200, headers
        for headers in own:
            assert client.post("/v1/documents", headers=headers).status_code == 422, headers


@pytest.mark.parametrize(
    ("setting", "allowed"),
    [
        ("*", [PAGE, EXTENSION]),
        ("moz-extension://*", [EXTENSION]),
        ("https://*.example", [PAGE]),
        (PAGE, [PAGE]),
    ],
)
def test_an_origin_of_the_setting_may_write_and_send_the_headers_that_it_asks_for(
    echo: EchoGenerator, tmp_path: Path, setting: str, allowed: Sequence[str]
) -> None:
    settings = Settings(cors_origins=[setting], api_keys=tmp_path / "keys.sqlite")
    with TestClient(create_app(settings, [echo])) as client:
        for origin in allowed:
            asked = {
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type,ocp-apim-subscription-key,x-stainless-lang",
            }
            preflight = client.options("/translate", headers=asked)  # without a key
            assert preflight.status_code == 200, preflight.text
            assert preflight.headers["access-control-allow-headers"] == asked["Access-Control-Request-Headers"]
            rejected = client.post("/translate", json={}, headers={"Origin": origin})
            assert rejected.status_code == 400, "it has no key"
            for answer in (preflight, rejected):
                assert answer.headers["access-control-allow-origin"] in ("*", origin)
        if setting != "*":
            others = ("https://page.example.attacker.org", "http://page.example", "null", "https://x/y")
            assert _statuses_of(client, "POST", "origin", others) == {403}
            for origin in others:
                answer = client.get("/languages", headers={"Origin": origin})
                assert "access-control-allow-origin" not in answer.headers


ROUTERS = [router for protocol in PROTOCOLS.values() for router in protocol.routers]
ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
POSTED = [route.path for route in ROUTES if "POST" in (route.methods or ())]
SHARED = sorted({path for protocol in PROTOCOLS.values() for each in protocol.shared for path in each.paths})
HEADERS = [(b"host", b"localhost"), (b"content-type", b"application/json")]
FULL = QueueFull("full", 1.0)


@pytest.fixture(scope="module")
def full(echo_bundle: Bundle) -> Iterator[FastAPI]:
    """An application whose engine is full, and that has no room for another document."""
    app = create_app(Settings(max_documents=1), [EchoGenerator(echo_bundle, error=FULL)])
    with TestClient(app):
        server: ServerState = app.state.server
        server.documents.capacity.begin_upload("another", 1)
        yield app


def _answered_unread(app: FastAPI, path: str, query: bytes = b"", num_bytes: int = 3_000_000) -> list[Message] | None:
    """Return the response to a POST request whose body never comes, or None if the application waits for it."""
    sent: list[Message] = []
    was_read = False
    headers = [*HEADERS, (b"content-length", str(num_bytes).encode())]
    scope: Scope = {"type": "http", "method": "POST", "path": path, "query_string": query, "headers": headers}

    async def receive() -> Message:
        nonlocal was_read
        was_read = was_read or not sent  # after the response, the rest is dropped
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return None if was_read else sent


def _status_of(answer: list[Message] | None) -> int | None:
    return None if answer is None else answer[0]["status"]


def _may_need_an_engine(path: str) -> bool:
    return all(protocol.needs_engine(path) for protocol in PROTOCOLS.values())


@pytest.mark.parametrize(
    "path", sorted(filter(_may_need_an_engine, {*POSTED, *SHARED} - {"/languages", "/breaksentence"}))
)
def test_a_full_server_rejects_requests_of_every_protocol_unread(full: FastAPI, path: str) -> None:
    assert _status_of(_answered_unread(full, path)) == 429


@pytest.mark.parametrize("path", ["/v1/documents", "/v2/document", "/translate_file"])
def test_uploads_beyond_the_limit_are_rejected_unread(full: FastAPI, path: str) -> None:
    assert _status_of(_answered_unread(full, path)) == 429


@pytest.mark.parametrize("path", ["/detect", "/v2/glossaries", "/v2/document/x/result", "/microsoft/detect"])
def test_requests_without_an_engine_are_read_by_a_full_server(full: FastAPI, path: str) -> None:
    assert _answered_unread(full, path) is None


def test_every_engine_free_path_has_a_route() -> None:
    free = {path for protocol in PROTOCOLS.values() for path in protocol.engine_free_paths if not path.endswith("/")}
    assert free <= {route.path for route in ROUTES}


def test_a_server_with_capacity_reads_the_body(echo: EchoGenerator) -> None:
    with TestClient(create_app(Settings(), [echo])) as client:
        for path in ("/v1/translate", "/v1/score", "/translate"):
            assert _answered_unread(cast(FastAPI, client.app), path) is None


@pytest.mark.parametrize(("num_bytes", "ends"), [(1000, False), (3_000_000, True)])
def test_a_long_body_that_is_not_read_ends_the_connection(full: FastAPI, num_bytes: int, ends: bool) -> None:
    [start, *_] = _answered_unread(full, "/v1/translate", num_bytes=num_bytes) or []
    assert ((b"connection", b"close") in start["headers"]) == ends


def test_a_rejected_request_is_counted_at_its_route(full: FastAPI) -> None:
    _answered_unread(full, "/v1/score")
    metrics = full.state.server.metrics.exposition().decode()
    assert 'kvasir_requests_total{endpoint="/v1/score",outcome="rejected",status="429"}' in metrics


UPLOAD_PATH = "/v2/document"
PART: Message = {"type": "http.request", "more_body": True}
END: Message = {"type": "http.request"}


class _Upload:
    """One upload. `send` has the next part of its body read; `task` ends when it is rejected or interrupted."""

    def __init__(self, body: "asyncio.Queue[Message]", task: "asyncio.Task[None]") -> None:
        self.task, self._body = task, body

    @property
    def is_rejected(self) -> bool:
        return self.task.done()

    async def send(self, part: Message) -> None:
        self._body.put_nowait(part)
        await _settle()

    async def interrupt(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def _read_body(_: Scope, receive: Receive, __: Send) -> None:
    """Read a body, and go on."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.Event().wait()


class _Client:
    """Starts uploads to a server."""

    def __init__(self, server: ServerState) -> None:
        self.middleware = Gate(_read_body, [Uploads(server, [UPLOAD_PATH])], ErrorFormats({}))
        self.sent: list[Message] = []
        self._uploads: list[_Upload] = []  # the event loop keeps no tasks

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        with scope["state"]["record"].resources:
            await self.middleware(scope, receive, send)

    async def upload(self, address: str = "a", length: bytes | None = None, path: str = UPLOAD_PATH) -> _Upload:
        async def send(message: Message) -> None:
            self.sent.append(message)

        body: asyncio.Queue[Message] = asyncio.Queue()
        headers = [] if length is None else [(b"content-length", length)]
        state = {"record": RequestRecord("id", client=address)}
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "state": state}
        upload = _Upload(body, asyncio.create_task(self._request(scope, body.get, send)))
        self._uploads.append(upload)
        await _settle()
        return upload


def _client(echo: EchoGenerator, settings: Settings) -> _Client:
    server = ServerState(settings, Metrics())
    server.open([echo])
    return _Client(server)


@pytest.fixture
def with_keys(echo: EchoGenerator, tmp_path: Path) -> Settings:
    return Settings(api_keys=tmp_path / "keys.sqlite")


@in_event_loop
async def test_uploads_without_a_key_are_limited_by_address_and_in_all(
    echo: EchoGenerator, with_keys: Settings
) -> None:
    client = _client(echo, with_keys)
    started = [(address, (await client.upload(address)).is_rejected) for address in "abcde" for _ in range(5)]
    assert [address for address, is_rejected in started if not is_rejected] == [*"aaaabbbbccccdddd"]


@in_event_loop
async def test_an_upload_counts_the_bytes_that_it_states_or_may_have(echo: EchoGenerator) -> None:
    client = _client(echo, Settings(max_file_megabytes=1, max_documents_megabytes=1))
    first = await client.upload(length=b"600000")
    assert (await client.upload(length=b"400001")).is_rejected
    second = await client.upload(length=b"400000")
    await first.send(PART)
    assert (await client.upload(length=b"600000")).is_rejected
    await first.send(END)
    assert (await client.upload()).is_rejected
    await (await client.upload(length=b"600000")).interrupt()
    await second.interrupt()
    assert not (await client.upload()).is_rejected


ALL = ("native", "libretranslate", "deeplx", "mtranserver", "apertium", "games", "microsoft")
DEEPLX = (b'{"text": "Tea.", ', b'"target_lang": "DE"}')


def _dispatched(
    path: str,
    parts: Sequence[bytes] = (),
    *,
    method: str = "POST",
    query: bytes = b"",
    protocols: Sequence[str] = ALL,
    headers: Sequence[tuple[bytes, bytes]] = (),
    root_path: str = "",
) -> tuple[str, list[Message]]:
    """Return the path that the application sees, and the messages that it receives."""
    sent: list[Message] = [
        {"type": "http.request", "body": part, "more_body": index < len(parts) - 1} for index, part in enumerate(parts)
    ]
    pending = iter([*sent, {"type": "http.disconnect"}])
    seen: list[Message] = []
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": root_path + path,
        "root_path": root_path,
        "query_string": query,
        "headers": list(headers),
    }

    async def receive() -> Message:
        return next(pending)

    async def send(_: Message) -> None:
        raise AssertionError("the middleware sends nothing")

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        while not seen or seen[-1]["type"] != "http.disconnect":
            seen.append(await receive())

    selected = [protocol for name, protocol in PROTOCOLS.items() if name in protocols]
    dispatch = ProtocolDispatch(selected, 1000, Admission(ServerState(Settings(), Metrics()), []))
    asyncio.run(Gate(app, [dispatch], ErrorFormats({}))(scope, receive, send))
    assert seen[:-1] == sent
    return scope["path"].removeprefix(root_path), seen


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/translate", b'{"text": "a", "target_lang": "DE"}', "/deeplx/translate"),
        ("/v1/translate", b'{"text": "a", "target_lang": "DE"}', "/deeplx/v1/translate"),
        ("/v1/translate", b'{"text": "a", "target": "de"}', "/v1/translate"),
        ("/translate", b'{"text": "a", "from": "en", "to": "de"}', "/mtranserver/translate"),
        ("/translate", b"langpair=en%7Cde&q=a", "/apertium/translate"),
        ("/translate", b'{"q": "a", "source": "en", "target": "de"}', "/translate"),
        ("/translate", b"{broken", "/translate"),
        ("/detect", b'{"q": "a"}', "/detect"),
        ("/", b'{"message": "translate sentences", "content": "a"}', "/sugoi/"),
        ("/deepl", b"{}", "/v2/translate"),
    ],
)
@pytest.mark.parametrize("root_path", ["", "/kvasir"])
def test_the_names_of_fields_select_the_protocol(path: str, body: bytes, expected: str, root_path: str) -> None:
    assert _dispatched(path, [body], root_path=root_path)[0] == expected


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("GET", "/translate", b"from=en&to=de&text=a", "/xunity/translate"),
        ("GET", "/translate", b"langpair=en|de&q=a", "/apertium/translate"),
        ("GET", "/languages", b"api-version=3.0", "/microsoft/languages"),
        ("GET", "/languages", b"", "/languages"),
        ("POST", "/translate", b"api-version=3.0&to=de", "/microsoft/translate"),
        ("OPTIONS", "/translate", b"api-version=3.0", "/translate"),
    ],
)
def test_the_names_in_the_query_select_the_protocol(method: str, path: str, query: bytes, expected: str) -> None:
    assert _dispatched(path, method=method, query=query)[0] == expected


def test_a_body_in_parts_is_read_and_received_again() -> None:
    assert _dispatched("/translate", DEEPLX)[0] == "/deeplx/translate"
    assert _dispatched("/translate", [b"", *DEEPLX, b""])[0] == "/deeplx/translate"


def test_a_body_above_the_limit_keeps_its_path() -> None:
    assert _dispatched("/translate", [*DEEPLX, b" " * 1000, b" "])[0] == "/deeplx/translate"
    announced = [(b"content-length", b"1001")]
    assert _dispatched("/translate", DEEPLX, headers=announced)[0] == "/translate"
