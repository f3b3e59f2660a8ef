"""Limit on the size of request bodies, applied while they are read."""

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.raw_headers import header


class BodyLimit:
    """ASGI middleware that returns 413 for a larger body: at once if `Content-Length` is larger, else while reading.

    Starlette's own middleware returns plain text instead of the protocol's error format.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int, upload_bytes: Mapping[str, int] | None = None) -> None:
        """`upload_bytes` are the limits of paths that accept files."""
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._upload_bytes = upload_bytes or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = header(scope, b"content-length")
        limit = self._upload_bytes.get(scope["path"], self._max_body_bytes)
        num_bytes = 0

        async def receive_within_limit() -> Message:
            nonlocal num_bytes
            if announced.isdecimal() and int(announced) > limit:
                raise _too_large(announced, limit)
            message = await receive()
            num_bytes += len(message.get("body", b""))
            if num_bytes > limit:
                raise _too_large(f"more than {limit}", limit)
            return message

        await self._app(scope, receive_within_limit, send)


def _too_large(size: str, limit: int) -> HTTPException:
    return HTTPException(
        413,
        f"the body must have at most {limit} bytes; send it in parts. Given: {size}",
        {"Connection": "close"},  # the rest of the body is not read
    )
