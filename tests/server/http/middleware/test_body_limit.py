import asyncio
from collections.abc import Sequence

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from server.http.middleware.body import BodyLimits


def _num_read(parts: Sequence[int], length: str | None = None, path: str = "/v1/translate") -> int:
    """Return how many parts of these sizes the application receives, of a body with the limit 10 or, at /file, 20."""
    num_read, pending = 0, [{"type": "http.request", "body": b"a" * size} for size in parts]

    async def receive() -> Message:
        return pending.pop(0)

    async def send(_: Message) -> None:
        raise AssertionError("the middleware sends nothing")

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        nonlocal num_read
        for _part in parts:
            await receive()
            num_read += 1

    headers = [] if length is None else [(b"content-length", length.encode())]
    scope = {"type": "http", "path": path, "headers": headers}
    try:
        asyncio.run(BodyLimits(app, 10, {"/file": 20})(scope, receive, send))
    except HTTPException as error:
        return num_read if (error.status_code, error.headers) == (413, {"Connection": "close"}) else -1
    return num_read


@pytest.mark.parametrize(
    ("parts", "length", "num_read"),
    [
        ([10], "10", 1),
        ([11], "11", 0),
        ([11], "5", 0),
        ([4, 6, 0], None, 3),
        ([4, 6, 1, 1], None, 2),
    ],
)
def test_a_body_is_read_up_to_its_limit(parts: list[int], length: str | None, num_read: int) -> None:
    assert _num_read(parts, length) == num_read


def test_a_path_for_files_has_its_own_limit() -> None:
    assert _num_read([20], "20", "/file") == 1
    assert _num_read([20], "21", "/file") == 0
    assert _num_read([20], "20", "/other") == 0


def test_the_limit_is_in_the_message() -> None:
    async def app(_: Scope, receive: Receive, __: Send) -> None:
        await receive()

    async def unused(*_: object) -> Message:
        raise AssertionError

    scope = {"type": "http", "path": "/", "headers": [(b"content-length", b"11")]}
    with pytest.raises(HTTPException, match=r"at most 10 bytes; send it in parts\. Given: 11"):
        asyncio.run(BodyLimits(app, 10)(scope, unused, unused))  # type: ignore[arg-type]
