"""Delivery of large responses at the pace of their client, within a memory limit."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.responses.errors import ErrorFormats, error_response
from server.http.state import RequestRecord, UnreadBytes
from server.interface.errors import QueueFull

_CHUNK_BYTES = 64 * 1024  # as large as uvicorn's write buffer, which holds no more than this and the next chunk


class ResponsePacing:
    """ASGI middleware that sends large bodies in chunks, each after the one before has left, and counts the rest.

    A body that is sent at once lies in the connection's buffer until its client has read it. A response that would
    exceed a limit is replaced by 429. A stream over HTTP/1.0, which has no chunks, is sent when it is complete.
    """

    def __init__(self, app: ASGIApp, unread: UnreadBytes, formats: ErrorFormats) -> None:
        self._app = app
        self._unread = unread
        self._formats = formats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record: RequestRecord = scope["state"]["record"]
        start: Message | None = None
        gathered: list[bytes] | None = None  # of a stream over HTTP/1.0
        is_replaced = False

        async def send_paced(message: Message) -> None:
            nonlocal start, gathered, is_replaced
            if is_replaced:
                return
            if message["type"] == "http.response.start":
                start = message
                if scope.get("http_version") == "1.0" and b"content-length" not in dict(message["headers"]):
                    gathered = []
                return
            body, more_body = message.get("body", b""), message.get("more_body", False)
            if gathered is not None and start is not None:
                gathered.append(body)
                if more_body:
                    return
                body = b"".join(gathered)
                start["headers"] = [*start["headers"], (b"content-length", b"%d" % len(body))]
                message = {"type": "http.response.body", "body": body}
            if len(body) <= _CHUNK_BYTES:
                await send_start()
                await send(message)
                return
            try:
                with self._unread.holding(record.client, len(body)):
                    await send_start()
                    await _send_in_chunks(send, body, more_body)
            except QueueFull as full:
                is_replaced = True
                if start is None:
                    raise
                await error_response(full, self._formats.of(scope))(scope, receive, send)

        async def send_start() -> None:
            nonlocal start
            if start is not None:
                sent, start = start, None
                await send(sent)

        await self._app(scope, receive, send_paced)


async def _send_in_chunks(send: Send, body: bytes, more_body: bool) -> None:
    for begin in range(0, len(body), _CHUNK_BYTES):
        end = begin + _CHUNK_BYTES
        is_last = end >= len(body)
        chunk = bytes(memoryview(body)[begin:end])
        await send({"type": "http.response.body", "body": chunk, "more_body": more_body or not is_last})
