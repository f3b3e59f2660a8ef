"""Admission of requests by the time that they would wait for the event loop."""

from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.request_turns import IS_LATE
from server.http.responses.error_formats import ErrorFormats
from server.http.responses.errors import unread_error_response
from server.interface.errors import QueueFull

_MESSAGE = "requests arrive faster than the server begins them; retry after 1 s"


class TurnAdmission:
    """ASGI middleware that rejects late requests with as little work as possible."""

    def __init__(self, app: ASGIApp, formats: ErrorFormats) -> None:
        self._app = app
        self._formats = formats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] == "http" and scope["state"].get(IS_LATE):
            error = QueueFull(_MESSAGE, retry_after_seconds=1.0)
            await unread_error_response(error, self._formats.of(scope), scope)(scope, receive, send)
            return
        await self._app(scope, receive, send)
