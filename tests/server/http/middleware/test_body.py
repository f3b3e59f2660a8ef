"""Limits of a body: bytes, memory, values of JSON, and the character set of a form."""

import asyncio
import json
from collections.abc import Sequence

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from server.http.app import create_app
from server.http.middleware.body import BodyLimits, JsonCheck
from server.http.state import RequestRecord, ServerState
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

MAX_BYTES, MAX_FILE_BYTES, MAX_VALUES = 100_000, 200_000, 5
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"


class _Reading:
    """A body that is sent in parts: those that the application receives, the memory after each, and the rejection."""

    def __init__(self, parts: Sequence[bytes], path: str = "/v1/translate", client: str = "a", **headers: str) -> None:
        self.server = ServerState(Settings(max_unread_megabytes=1), Metrics())
        self.received: list[bytes] = []
        self.counted: list[int] = []
        self.error: HTTPException | None = None
        self._pending = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        state = {"record": RequestRecord("id", client=client)}
        self._scope: Scope = {"type": "http", "method": "POST", "path": path, "headers": fields, "state": state}

    def read(self, max_values: int = MAX_BYTES) -> "_Reading":
        async def receive() -> Message:
            return self._pending.pop(0)

        async def send(_: Message) -> None:
            raise AssertionError("the middleware sends nothing")

        async def app(_: Scope, receive: Receive, __: Send) -> None:
            while self._pending:
                self.received.append((await receive())["body"])
                self.counted.append(self.server.body_memory.total)

        files = {"/v1/documents": MAX_FILE_BYTES}
        limits = BodyLimits(app, MAX_BYTES, files, max_values=max_values, memory=self.server.body_memory)
        try:
            asyncio.run(limits(self._scope, receive, send))
        except HTTPException as error:
            self.error = error
        return self

    @property
    def status(self) -> int:
        return 200 if self.error is None else self.error.status_code


def _pieces(body: bytes, size: int) -> list[bytes]:
    return [body[begin : begin + size] for begin in range(0, len(body), size)]


@pytest.mark.parametrize(
    ("path", "sizes", "stated", "num_received"),
    [
        ("/v1/translate", [MAX_BYTES], MAX_BYTES, 1),
        ("/v1/translate", [MAX_BYTES + 1], MAX_BYTES + 1, 0),
        ("/v1/translate", [MAX_BYTES + 1], 5, 0),
        ("/v1/translate", [4, MAX_BYTES - 4, 0], None, 3),
        ("/v1/translate", [4, MAX_BYTES - 4, 1, 1], None, 2),
        ("/v1/documents", [MAX_FILE_BYTES], MAX_FILE_BYTES, 1),
        ("/v1/documents", [MAX_FILE_BYTES + 1], MAX_FILE_BYTES + 1, 0),
    ],
)
def test_a_body_is_read_up_to_the_limit_of_its_path(
    path: str, sizes: list[int], stated: int | None, num_received: int
) -> None:
    headers = {} if stated is None else {"content_length": str(stated)}
    reading = _Reading([b"a" * size for size in sizes], path, **headers).read()
    assert len(reading.received) == num_received
    if reading.error is not None:
        assert (reading.status, reading.error.headers) == (413, {"Connection": "close"})
        assert "bytes; send it in parts. Given: " in reading.error.detail


def test_a_body_takes_the_memory_of_its_client_until_its_request_ends() -> None:
    reading = _Reading([b"a" * 1000, b"", b"b" * 500]).read()
    assert (reading.counted, reading.server.body_memory.total) == ([1000, 1000, 1500], 0)
    assert _Reading([b"a" * 1000], "/v1/documents").read().counted == [0], "uploads count as documents"
    beyond = _Reading([b"a" * 1000, b"a"])
    beyond.server.body_memory.add("a", 249_000)
    assert beyond.read().error is not None
    assert (beyond.status, beyond.server.body_memory.total) == (429, 249_000)
    other = _Reading([b"a" * 2000], client="b")
    other.server.body_memory.add("a", 249_000)
    assert other.read().counted == [251_000]


@pytest.mark.parametrize("path", ["/v1/translate", "/translate", "/v2/translate"])
def test_a_server_without_memory_for_bodies_answers_429(echo: EchoGenerator, path: str) -> None:
    app = create_app(Settings(max_unread_megabytes=1), [echo])
    with TestClient(app) as client:
        app.state.server.body_memory.add("testclient", 999_000)
        answer = client.post(path, json={"text": "Tea. " * 400, "q": "Tea."})
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) >= 1
        assert "bodies of requests of this client" in answer.text
        assert app.state.server.body_memory.total == 999_000


def _num_separators(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(map(_num_separators, value.values()))
    return 1 + max(len(value) - 1, 0) + sum(map(_num_separators, value)) if isinstance(value, list) else 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a"\\[{,ä'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('k"\\,'), inner),
)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(JSON, st.integers(1, 9))
def test_separators_are_counted_outside_strings_however_the_body_is_divided(value: object, size: int) -> None:
    check, counted = JsonCheck(10**9), []
    for piece in _pieces(json.dumps(value, ensure_ascii=False).encode(), size):
        check.add(piece)
        counted.append(check.num_values)
    assert counted[-1] == _num_separators(value)
    assert counted == sorted(counted)


@pytest.mark.parametrize(
    ("parts", "headers", "num_received"),
    [
        ([b"[0,0,", b"0,0]", b"  "], {}, 3),
        ([b"[0,0,", b"0,0,0,0]", b"  "], {}, 1),
        ([b"[" + b"1" * 1001 + b"]"], {}, 0),
        ([b'["' + b"1" * 1001 + b'"]'], {}, 1),
        ([b"[[[[["], {"content_length": "5"}, 1),
        ([b"[[[[[["], {"content_length": "6"}, 0),
        ([b"q=", b"," * 10], {"content_type": FORM}, 2),
        ([b" ", b"{", b"," * 10], {"content_type": FORM}, 2),
        ([b"\xef\xbb\xbf {", b"," * 10], {"content_type": FORM}, 1),
        ([b"q=", b"," * 10], {"content_type": "text/plain"}, 1),
    ],
)
def test_what_routes_read_as_json_is_rejected_at_the_part_with_too_many_values_or_digits(
    parts: list[bytes], headers: dict[str, str], num_received: int
) -> None:
    reading = _Reading(parts, **({"content_type": "application/json"} | headers)).read(MAX_VALUES)
    assert len(reading.received) == num_received
    assert reading.status == (200 if num_received == len(parts) else 422)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-le"])
def test_json_in_another_encoding_is_rejected_whatever_its_length(encoding: str) -> None:
    body = "{}".encode(encoding)
    for headers in ({}, {"content_length": "4"}):
        assert _Reading([body], content_type="application/json", **headers).read().status == 400
    assert _Reading([body], content_type=MULTIPART).read().status == 200


def _part(charset: str = "", file: str = "", content: bytes = b"Tea.") -> bytes:
    declared = f"Content-Type: text/plain{charset}\r\n" if charset else ""
    head = f'--b\r\nContent-Disposition: form-data; name="q"{file}\r\n{declared}\r\n'
    return head.encode() + content + b"\r\n"


_FILE, _PUNYCODE, _GREETING = '; filename="a.txt"', "; charset=punycode", "Grüße".encode()


@pytest.mark.parametrize(
    ("media_type", "parts", "is_accepted"),
    [
        (FORM, [], True),
        (FORM + _PUNYCODE, [], False),
        ("multipart/form-data", [], True),
        (MULTIPART, [b"--x\r\nno form", b"at all"], True),  # left to its own parser
        (MULTIPART, [_part(), _part(_PUNYCODE)], False),
        (MULTIPART, [_part(_PUNYCODE, _FILE), _part()], True),
        (MULTIPART + "; charset=utf-8", [_part(content=_GREETING)], True),
        (MULTIPART + "; charset=us-ascii", [_part(content=_GREETING)], False),
        (MULTIPART, [_part(content="Grüße".encode("latin-1"))], False),
        (MULTIPART, [_part(content=b"\xc3"), _part(content=b"\xbc")], False),
        (MULTIPART, [_part("", _FILE, b"\xff"), _part()], True),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_form_and_its_fields_have_no_other_character_set(
    media_type: str, parts: list[bytes], is_accepted: bool, size: int
) -> None:
    reading = _Reading([*_pieces(b"".join(parts) + b"--b--\r\n", size)], content_type=media_type).read()
    assert reading.status == (200 if is_accepted else 400)
    if reading.error is not None:
        assert "UTF-8" in reading.error.detail or "ASCII" in reading.error.detail
