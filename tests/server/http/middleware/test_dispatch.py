"""The choice among protocols that share a path, without an application behind it."""

import asyncio
from collections.abc import Sequence

import pytest
from starlette.types import Message, Receive, Scope, Send

from server.http.middleware.gate import Admission, Gate, ProtocolDispatch
from server.http.protocols.registry import PROTOCOLS
from server.http.responses.errors import ErrorFormats
from server.http.state import ServerState
from server.operations.metrics import Metrics
from server.operations.settings import Settings

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
        ("/translate", b'\xef\xbb\xbf{"text": "a", "target_lang": "DE"}', "/deeplx/translate"),
        ("/v1/translate", b'{"text": "a", "target_lang": "DE"}', "/deeplx/v1/translate"),
        ("/v1/translate", b'{"text": "a", "target": "de"}', "/v1/translate"),
        ("/translate", b'{"text": "a", "from": "en", "to": "de"}', "/mtranserver/translate"),
        ("/translate", b"langpair=en%7Cde&q=a", "/apertium/translate"),
        ("/translate", b'{"q": "a", "source": "en", "target": "de"}', "/translate"),
        ("/translate", b"q=a&source=en&target=de", "/translate"),
        ("/translate", b"{broken", "/translate"),
        ("/translate", b"[" * 900, "/translate"),
        ("/translate", b"", "/translate"),
        ("/detect", b'{"text": "a"}', "/mtranserver/detect"),
        ("/detect", b'{"q": "a"}', "/detect"),
        ("/", b'{"message": "translate sentences", "content": "a"}', "/sugoi/"),
        ("/", b'{"content": "a"}', "/"),
        ("/deepl", b"{}", "/v2/translate"),
        ("/other", b'{"text": "a", "target_lang": "DE"}', "/other"),
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
        ("POST", "/translate", b"q=a&source=en&target=de", "/translate"),
        ("OPTIONS", "/translate", b"api-version=3.0", "/translate"),
        ("GET", "/", b"", "/"),
        ("GET", "/", b"message=translate+sentences&content=a", "/"),
    ],
)
def test_the_names_in_the_query_select_the_protocol(method: str, path: str, query: bytes, expected: str) -> None:
    assert _dispatched(path, method=method, query=query)[0] == expected


def test_a_body_in_parts_is_read_and_received_again() -> None:
    assert _dispatched("/translate", DEEPLX)[0] == "/deeplx/translate"
    assert _dispatched("/translate", [b"", *DEEPLX, b""])[0] == "/deeplx/translate"


def test_a_body_that_breaks_off_has_no_sign() -> None:
    assert _dispatched("/translate", DEEPLX[:1])[0] == "/translate"


def test_a_body_above_the_limit_keeps_its_path() -> None:
    assert _dispatched("/translate", [*DEEPLX, b" " * 1000, b" "])[0] == "/deeplx/translate"
    announced = [(b"content-length", b"1001")]
    assert _dispatched("/translate", DEEPLX, headers=announced)[0] == "/translate"


def test_a_file_is_not_read_before_its_route() -> None:
    headers = [(b"content-type", b"multipart/form-data; boundary=x")]
    assert _dispatched("/translate", DEEPLX, headers=headers)[0] == "/translate"


@pytest.mark.parametrize(
    ("protocols", "expected"),
    [
        (["deeplx"], "/deeplx/translate"),
        (["native", "deeplx"], "/deeplx/translate"),
        (["libretranslate"], "/translate"),
        (["native"], "/translate"),
    ],
)
def test_only_selected_protocols_answer(protocols: list[str], expected: str) -> None:
    assert _dispatched("/translate", [b'{"text": "a"}'], protocols=protocols)[0] == expected
