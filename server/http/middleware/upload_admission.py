"""Admission of document uploads before their body is read."""

from collections import Counter
from collections.abc import Callable, Collection
from functools import partial

from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.raw_headers import header
from server.http.responses.error_formats import ErrorFormats
from server.http.responses.errors import unread_error_response
from server.http.state import ServerState
from server.interface.errors import KvasirError, QueueFull

_MAX_WITHOUT_KEY, _MAX_OF_ADDRESS = 16, 4  # uploads that are being received
_RETRY_SECONDS = 5.0


class UploadAdmission:
    """ASGI middleware that counts uploads in progress as documents, and rejects those beyond the limit unread.

    Routes reject them too late: FastAPI has received a form, and written its file to disk, when a route is called. On a
    server with API keys, a form that may have the key in it is none of the documents before it is received, so that
    strangers take no place of one and displace none.
    """

    def __init__(self, app: ASGIApp, server: ServerState, formats: ErrorFormats, paths: Collection[str]) -> None:
        self._app = app
        self._server = server
        self._formats = formats
        self._paths = frozenset(paths)
        self._without_key: Counter[str] = Counter()  # by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes and paths."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        try:
            end = self._begin(scope)
        except KvasirError as error:
            await unread_error_response(error, self._formats.of(scope), scope)(scope, receive, send)
            return
        is_received = False

        async def receive_counted() -> object:
            nonlocal is_received
            message = await receive()
            if not is_received and not message.get("more_body", False):
                is_received = True
                end()
            return message

        try:
            await self._app(scope, receive_counted, send)  # type: ignore[arg-type]
        finally:
            if not is_received:
                end()

    def _begin(self, scope: Scope) -> Callable[[], None]:
        """Count an upload; return a function that ends it. Raises `Draining` and `QueueFull`."""
        record = scope["state"]["record"]
        if self._server.key_gate is None or record.key is not None:
            upload = self._server.begin_upload(record.client, self._num_bytes(scope))
            return partial(self._server.documents.capacity.end_upload, upload)
        self._server.accept()
        address = record.client
        if self._without_key.total() >= _MAX_WITHOUT_KEY or self._without_key[address] >= _MAX_OF_ADDRESS:
            raise QueueFull("too many uploads without an API key in a header; send it there", _RETRY_SECONDS)
        self._without_key[address] += 1
        return partial(self._end_without_key, address)

    def _end_without_key(self, address: str) -> None:
        self._without_key[address] -= 1
        self._without_key += Counter()  # without addresses that have none

    def _num_bytes(self, scope: Scope) -> int:
        """Return the bytes of the body, or as many as it may have where it does not state them."""
        announced = header(scope, b"content-length")
        limit = self._server.settings.document_options.limits.max_file_bytes
        return min(int(announced), limit) if announced.isdecimal() else limit
