"""Checks of `Host` and `Origin`: which names reach the server, and which web pages may send requests."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.middleware.origins import origin_pattern
from server.http.raw_headers import header
from server.http.responses.error_formats import ErrorFormats
from server.operations.network import is_loopback

_READING_METHODS = ("GET", "HEAD", "OPTIONS")
_LOOPBACK_NAMES = ("localhost", "*.localhost")


class HostCheck:
    """ASGI middleware that rejects requests for foreign host names, and writing requests of foreign web pages.

    A page can give its own name the address of this server (DNS rebinding), and so read what only the machine itself
    should. IP addresses and `localhost` are always accepted, because no page can give them another address. With
    `any_host`, every name is accepted.

    Origins are checked as in `net/http.CrossOriginProtection`: by `Sec-Fetch-Site`, else by comparing `Origin` with
    `Host`. Requests without either header come from programs.
    """

    def __init__(
        self,
        app: ASGIApp,
        formats: ErrorFormats,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str],
        has_settings: bool = True,
    ) -> None:
        """Without `has_settings`, no setting allows a host or an origin, and no message names one."""
        self._app = app
        self._host_hint = "add it with --allowed-hosts" if has_settings else "use localhost or an IP address"
        self._origin_hint = "add it with --cors-origins" if has_settings else "use a program instead of a web page"
        self._formats = formats
        self._any_host = "*" in allowed_hosts
        self._hosts = tuple(host.lower() for host in (*allowed_hosts, *_LOOPBACK_NAMES))
        self._any_origin = "*" in allowed_origins
        self._origins = origin_pattern(allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        message = None if scope["type"] != "http" else self._problem(scope)
        if message is None:
            await self._app(scope, receive, send)
            return
        body = self._formats.of(scope).body(403, "forbidden", message)
        await JSONResponse(body, 403, {"Connection": "close"})(scope, receive, send)

    def _problem(self, scope: Scope) -> str | None:
        host = header(scope, b"host")
        name = _host_name(host)
        server = scope.get("server")
        if not (self._any_host or not host or self._is_allowed(name) or (server and name == server[0])):
            return f"host {name[:100]} is not allowed; {self._host_hint}"
        if scope["method"] in _READING_METHODS:
            return None
        origin = header(scope, b"origin")
        if not origin or self._any_origin or self._origins.fullmatch(origin) or not _is_foreign(scope, origin, host):
            return None
        return f"origin {origin[:100]} is not allowed; {self._origin_hint}"

    def _is_allowed(self, name: str) -> bool:
        if _is_ip_address(name):
            return True
        return any(name == host or (host[:2] == "*." and name.endswith(host[1:])) for host in self._hosts)


def default_hosts(host: str) -> list[str]:
    """Return the host names accepted without `--allowed-hosts`: local ones on a loopback address, else any."""
    return [] if is_loopback(host) else ["*"]


@lru_cache(64)
def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_foreign(scope: Scope, origin: str, host: str) -> bool:
    try:
        address = urlsplit(origin)
    except ValueError:
        return True
    if address.scheme not in ("http", "https") and origin != "null":
        return False  # a browser extension, which the user has installed
    if site := header(scope, b"sec-fetch-site"):
        return site not in ("same-origin", "none")
    return address.netloc.lower() != host.lower()


def _host_name(host: str) -> str:
    """Return a `Host` without its port and, for IPv6, its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()
