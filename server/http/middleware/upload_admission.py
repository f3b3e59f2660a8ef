"""Admission of document uploads before their body is read."""

from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.raw_headers import header
from server.http.responses.error_formats import ErrorFormats
from server.http.responses.errors import unread_error_response
from server.http.state import ServerState
from server.interface.errors import KvasirError


class UploadAdmission:
    """ASGI middleware that counts uploads in progress as documents, and rejects those beyond the limit unread.

    Routes reject them too late: FastAPI has received a form, and written its file to disk, when a route is called.
    """

    def __init__(self, app: ASGIApp, server: ServerState, formats: ErrorFormats, paths: Collection[str]) -> None:
        self._app = app
        self._server = server
        self._formats = formats
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes and paths."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        try:
            upload = self._server.begin_upload(scope["state"]["record"].client, self._num_bytes(scope))
        except KvasirError as error:
            await unread_error_response(error, self._formats.of(scope), scope)(scope, receive, send)
            return
        is_received = False

        async def receive_counted() -> object:
            nonlocal is_received
            message = await receive()
            if not is_received and not message.get("more_body", False):
                is_received = True
                self._server.documents.capacity.end_upload(upload)
            return message

        try:
            await self._app(scope, receive_counted, send)  # type: ignore[arg-type]
        finally:
            if not is_received:
                self._server.documents.capacity.end_upload(upload)

    def _num_bytes(self, scope: Scope) -> int:
        """Return the bytes of the body, or as many as it may have where it does not state them."""
        announced = header(scope, b"content-length")
        limit = self._server.settings.document_options.limits.max_file_bytes
        return min(int(announced), limit) if announced.isdecimal() else limit
