"""Addresses of clients behind a proxy."""

import logging
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from server.http.requests.parameters import header
from server.operations.settings import UNIX_CLIENT

_log = logging.getLogger("kvasir")


class ForwardedHeaders:
    """ASGI middleware that takes client and scheme from `X-Forwarded-For` and `X-Forwarded-Proto` of trusted proxies.

    Any other client could name a new address in each request, and escape from the limits of one client.
    """

    def __init__(self, app: ASGIApp, trusted_proxies: Sequence[str]) -> None:
        """`trusted_proxies` are IP addresses, networks, or `unix` for those on a Unix socket."""
        self._app = app
        self._trusting = ProxyHeadersMiddleware(app, list(trusted_proxies))  # type: ignore[arg-type]
        self._has_warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] in ("http", "websocket"):
            host, port = scope.get("client") or (UNIX_CLIENT, 0)
            if host in self._trusting.trusted_hosts:
                scope["client"] = (host, port)
                await self._trusting(scope, receive, send)  # type: ignore[arg-type]
                return
            if not self._has_warned and header(scope, b"x-forwarded-for"):
                self._has_warned = True
                _log.warning("X-Forwarded-For ignored; see --trusted-proxies", extra={"client": host})
        await self._app(scope, receive, send)
