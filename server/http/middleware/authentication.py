"""API keys in headers and addresses: requests without a valid one are rejected before their body is read."""

from collections.abc import Sequence
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.protocols.protocol import Protocol
from server.http.requests.api_keys import begin_request, missing_key
from server.http.responses.error_formats import ErrorFormats
from server.http.responses.errors import unread_error_response
from server.http.state import ServerState
from server.interface.errors import KvasirError

_SCHEMES = ("bearer", "deepl-auth-key")
_MAX_FIELDS = 2000  # of a query with a key: 64 KB of them hold the event loop for 0.02 s


class Authentication:
    """ASGI middleware that requires a key for the protocols' paths, if the server has a file of keys.

    A protocol whose clients send the key in the body checks it there, in a dependency of its routes. The page, the
    documentation, health probes and metrics need no key.
    """

    def __init__(self, app: ASGIApp, server: ServerState, formats: ErrorFormats, protocols: Sequence[Protocol]) -> None:
        self._app = app
        self._server = server
        self._formats = formats
        self._protocols = protocols

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes, and paths that need no key."""
        protocol = self._protected_by(scope)
        if protocol is None:
            await self._app(scope, receive, send)
            return
        key = _key_in_head(scope, protocol)
        try:
            if key:
                begin_request(self._server, scope["state"]["record"], key)
            elif protocol.key_parameter is None or scope["method"] in ("GET", "HEAD", "DELETE"):
                raise missing_key(protocol.key_parameter)
        except KvasirError as error:
            await unread_error_response(error, self._formats.of(scope), scope)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _protected_by(self, scope: Scope) -> Protocol | None:
        if scope["type"] != "http" or self._server.key_gate is None:
            return None
        path = str(scope["path"]).removeprefix(str(scope.get("root_path", "")))
        owners = [protocol for protocol in self._protocols if protocol.owns(path)]
        exact = [protocol for protocol in owners if path in protocol.paths]
        for protocol in exact or owners:
            return None if protocol.is_open(path) else protocol
        return None


def _key_in_head(scope: Scope, protocol: Protocol) -> str | None:
    headers = Headers(scope=scope)
    for name in ("authorization", *protocol.key_headers):
        value = headers.get(name, "").strip()
        scheme, _, credentials = value.partition(" ")
        if scheme.lower() in _SCHEMES and credentials.strip():
            return credentials.strip()
        if value and scheme.lower() not in _SCHEMES and name in protocol.key_headers:
            return value
    names = protocol.key_queries if protocol.key_parameter is None else (protocol.key_parameter, *protocol.key_queries)
    query = scope["query_string"].decode("latin-1")
    if not names or query.count("&") >= _MAX_FIELDS:
        return None
    fields = parse_qs(query)
    return next((fields[name][0] for name in names if name in fields), None)
