"""Memory limit for the bodies of running requests."""

from collections.abc import Collection

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.responses.errors import retry_after
from server.http.state import RequestRecord, ServerState
from server.interface.errors import QueueFull


class BodyMemory:
    """ASGI middleware that counts bodies while they are read and processed, and returns 429 beyond the limit.

    Without it, a thousand connections that send bodies of 4 MB slowly, and never the last byte, hold 4 GB. Uploads are
    not counted here: they are on disk, and limited with the documents.
    """

    def __init__(self, app: ASGIApp, server: ServerState, upload_paths: Collection[str]) -> None:
        self._app = app
        self._server = server
        self._upload_paths = frozenset(upload_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes, and uploads."""
        if scope["type"] != "http" or scope["path"] in self._upload_paths:
            await self._app(scope, receive, send)
            return
        record: RequestRecord = scope["state"]["record"]
        held: dict[str, int] = {}  # by client: an API key is known only after the head

        async def receive_counted() -> Message:
            message = await receive()
            if num_bytes := len(message.get("body", b"")):
                try:
                    self._server.body_memory.add(record.client, num_bytes)
                except QueueFull as full:
                    headers = {"Connection": "close", "Retry-After": retry_after(full)}  # the rest is not read
                    raise HTTPException(429, str(full), headers) from full
                held[record.client] = held.get(record.client, 0) + num_bytes
            return message

        try:
            await self._app(scope, receive_counted, send)
        finally:
            for client, num_bytes in held.items():
                self._server.body_memory.remove(client, num_bytes)
