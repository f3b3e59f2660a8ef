"""The gate: checks that a request passes before its body is received and its route is called."""

import asyncio
import ipaddress
import math
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.engine.overload import DelayControl
from server.http.protocols.protocol import Protocol, RequestFields, SharedPaths
from server.http.requests.admission import admit, begin_request, missing_key
from server.http.requests.parameters import header, path_of
from server.http.responses.errors import ErrorFormats, http_error_response, unread_error_response
from server.http.state import ServerState, UnreadBytes
from server.interface.errors import KvasirError, QueueFull
from server.operations.settings import is_loopback

_READING_METHODS = ("GET", "HEAD", "OPTIONS")
_LOOPBACK_NAMES = ("localhost", "*.localhost")
_PROBES = ("/health/live", "/health/ready")
_BEGUN_AT_ONCE = 4
_KEY_SCHEMES = ("bearer", "deepl-auth-key")
_MAX_QUERY_FIELDS = 2000  # of a query with a key: 64 KB of them hold the event loop for 0.02 s
_MAX_UPLOADS, _MAX_UPLOADS_OF_ADDRESS = 16, 4  # without a key, that are being received
_UPLOAD_RETRY_SECONDS = 5.0
_KEPT_PATHS = 256


@dataclass(slots=True)
class Arrival:
    """A request at the gate.

    `paths` are those that it may belong to, without the server's own prefix: one, unless the protocol is in a body that
    is not read. A check that reads the body replaces `receive`.
    """

    scope: Scope
    receive: Receive
    paths: tuple[str, ...]


Check = Callable[[Arrival], Awaitable[None] | None]
"""Raises `KvasirError` or `HTTPException` for a request that must not pass."""


class Gate:
    """ASGI middleware that applies `checks` in their order, and answers requests that fail one unread."""

    def __init__(self, app: ASGIApp, checks: Sequence[Check], formats: ErrorFormats) -> None:
        self._app = app
        self._checks = checks
        self._formats = formats
        self._format_of_paths = lru_cache(_KEPT_PATHS)(formats.of_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        # The handshake of a WebSocket opens what its page writes to, and has no method: it is checked as a POST is.
        checked = scope if scope["type"] == "http" else {**scope, "method": "POST"}
        arrival = Arrival(checked, receive, (path_of(scope),))
        try:
            for check in self._checks:
                waiting = check(arrival)
                if waiting is not None:
                    await waiting
        except KvasirError as error:
            response = unread_error_response(error, self._format_of_paths(arrival.paths), scope)
            await response(scope, receive, send)
            return
        except HTTPException as error:
            response = http_error_response(error, checked["method"], self._formats.of(scope))
            await response(scope, receive, send)
            return
        await self._app(scope, arrival.receive, send)


def check_head(arrival: Arrival) -> None:
    """Reject other versions of HTTP than 1, compressed bodies, and requests without a host or with several."""
    scope = arrival.scope
    version, hosts = scope.get("http_version", "1.1"), [value for name, value in scope["headers"] if name == b"host"]
    encoding = header(scope, b"content-encoding")
    if version not in ("1.0", "1.1"):
        headers = {"Upgrade": "HTTP/1.1", "Connection": "close"}
        raise HTTPException(426, f"HTTP/1.1 is required. Given: HTTP/{version}", headers)
    if encoding.lower() not in ("", "identity"):  # RFC 9110, section 15.5.16
        headers = {"Accept-Encoding": "identity", "Connection": "close"}
        message = f"a request must not be compressed. Given: `Content-Encoding: {encoding[:60]}`"
        raise HTTPException(415, message, headers)
    if len(hosts) > 1 or (not hosts and version == "1.1"):  # RFC 9112, section 3.2
        raise HTTPException(400, f"one `Host` header is required. Given: {len(hosts)}", {"Connection": "close"})


class Hosts:
    """Check of `Host` and `Origin`: rejects foreign host names, and writing requests of foreign web pages.

    A page can give its own name the address of this server (DNS rebinding), and so read what only the machine itself
    should. IP addresses and `localhost` are always accepted, because no page can give them another address. With `*`,
    every name is accepted.

    Origins are checked as in `net/http.CrossOriginProtection`: by `Sec-Fetch-Site`, else by comparing `Origin` with
    `Host`. Requests without either header come from programs.
    """

    def __init__(
        self, allowed_hosts: Sequence[str], allowed_origins: Sequence[str], *, has_settings: bool = True
    ) -> None:
        """Without `has_settings`, no setting allows a host or an origin, and no message names one."""
        self._host_hint = "add it with --allowed-hosts" if has_settings else "use localhost or an IP address"
        self._origin_hint = "add it with --cors-origins" if has_settings else "use a program instead of a web page"
        self._any_host = "*" in allowed_hosts
        self._hosts = tuple(host.lower() for host in (*allowed_hosts, *_LOOPBACK_NAMES))
        self._any_origin = "*" in allowed_origins
        self._origins = origin_pattern(allowed_origins)

    def __call__(self, arrival: Arrival) -> None:
        """Check one request."""
        if (problem := self._problem(arrival.scope)) is not None:
            raise HTTPException(403, problem, {"Connection": "close"})

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


def origin_pattern(origins: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern of origins that match one of `origins`. `*` stands for any part of a host name.

    `moz-extension://*` is every extension of Firefox, which gives each installation another name.
    """
    return re.compile("|".join(re.escape(origin).replace(r"\*", "[^/]*") for origin in origins) or "(?!)")


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


class Turns:
    """Lets four requests at most begin in each iteration of the event loop, and as many probes.

    Forty connections that send a hundred requests each at once would otherwise begin forty in every iteration, and a
    probe, which takes some iterations, would wait for all of them. A request may wait `max_seconds` for its turn,
    except during a burst. POST requests that arrive while the next one in turn has waited longer are rejected at once:
    with requests that arrive faster than the event loop begins them, all would be answered late, however few of them
    the engines accept.
    """

    def __init__(self, max_seconds: float = math.inf) -> None:
        self._waiting = (deque[tuple[float, asyncio.Future[None]]](), deque[tuple[float, asyncio.Future[None]]]())
        self._num_begun = [0, 0]  # in this iteration
        self._delay = DelayControl(max_seconds)

    def __call__(self, arrival: Arrival) -> Awaitable[None] | None:
        """Return what to wait for. Raises `QueueFull` for a late request."""
        loop, scope = asyncio.get_running_loop(), arrival.scope
        if scope["method"] == "POST" and self._is_late(loop.time()):
            raise QueueFull("requests arrive faster than the server begins them; retry after 1 s", 1.0)
        is_probe = scope["path"] in _PROBES
        if self._num_begun[is_probe] == _BEGUN_AT_ONCE:
            turn = loop.create_future()
            self._waiting[is_probe].append((loop.time(), turn))
            return turn
        if not self._num_begun[is_probe]:
            loop.call_soon(self._end, is_probe)
        self._num_begun[is_probe] += 1
        return None

    def _is_late(self, now: float) -> bool:
        waiting = self._waiting[False]
        return self._delay.rejects(now, now - waiting[0][0] if waiting else 0.0)

    def _end(self, is_probe: bool) -> None:
        """End an iteration, and begin the next."""
        waiting, num_begun = self._waiting[is_probe], 0
        while waiting and num_begun < _BEGUN_AT_ONCE:
            _, turn = waiting.popleft()
            if not turn.done():  # its client may have left
                turn.set_result(None)
                num_begun += 1
        self._num_begun[is_probe] = num_begun
        if num_begun:
            asyncio.get_running_loop().call_soon(self._end, is_probe)


def unread_share(unread: UnreadBytes) -> Check:
    """Return a check that rejects what is posted by a client that has used up its share of unread responses."""

    def check(arrival: Arrival) -> None:
        if arrival.scope["method"] == "POST":
            unread.check(arrival.scope["state"]["record"].client)

    return check


class Keys:
    """Check of API keys in headers and addresses, for the protocols' paths, if the server has a file of keys.

    A protocol whose clients send the key in the body checks it there, in a dependency of its routes. The page, the
    documentation, health probes and metrics need no key.
    """

    def __init__(self, server: ServerState, protocols: Sequence[Protocol]) -> None:
        self._server = server
        self._protocols = protocols

    def __call__(self, arrival: Arrival) -> None:
        """Check one request."""
        scope = arrival.scope
        if self._server.key_gate is None or (protocol := self._protected_by(path_of(scope))) is None:
            return
        if key := _key_in_head(scope, protocol):
            begin_request(self._server, scope["state"]["record"], key)
        elif protocol.key_parameter is None or scope["method"] in ("GET", "HEAD", "DELETE"):
            raise missing_key(protocol.key_parameter)

    def _protected_by(self, path: str) -> Protocol | None:
        owner = next(iter(owners_of(path, self._protocols)), None)
        return None if owner is None or owner.is_open(path) else owner


def owners_of(path: str, protocols: Sequence[Protocol]) -> Sequence[Protocol]:
    """Return the protocols that own a path: those that name it, else those that name the longest prefix of it."""
    lengths = {protocol.name: protocol.owned_length(path) for protocol in protocols}
    longest = max(lengths.values(), default=0)
    return [protocol for protocol in protocols if longest and lengths[protocol.name] == longest]


def _key_in_head(scope: Scope, protocol: Protocol) -> str | None:
    headers = Headers(scope=scope)
    for name in ("authorization", *protocol.key_headers):
        value = headers.get(name, "").strip()
        scheme, _, credentials = value.partition(" ")
        if scheme.lower() in _KEY_SCHEMES and credentials.strip():
            return credentials.strip()
        if value and scheme.lower() not in _KEY_SCHEMES and name in protocol.key_headers:
            return value
    names = protocol.key_queries if protocol.key_parameter is None else (protocol.key_parameter, *protocol.key_queries)
    query = scope["query_string"].decode("latin-1")
    if not names or query.count("&") >= _MAX_QUERY_FIELDS:
        return None
    fields = parse_qs(query)
    return next((fields[name][0] for name in names if name in fields), None)


class Admission:
    """Check of whether a model accepts another request, for the requests of all protocols that need one.

    Routes reject them too late: FastAPI has read and parsed a JSON body when the first dependency of a route runs. A
    POST request to a protocol's path needs an engine, unless the protocol lists the path as one of its
    `engine_free_paths` or `upload_paths`, which have an admission of their own. So a new route is covered without an
    entry anywhere.
    """

    def __init__(self, server: ServerState, protocols: Sequence[Protocol]) -> None:
        self._server = server
        self._protocols = protocols
        self._needs_engine = lru_cache(_KEPT_PATHS)(self._path_needs_engine)

    def __call__(self, arrival: Arrival) -> None:
        """Check one request."""
        if arrival.scope["method"] == "POST" and any(map(self._needs_engine, arrival.paths)):
            admit(self._server, arrival.scope["state"]["record"])

    def _path_needs_engine(self, path: str) -> bool:
        return any(protocol.needs_engine(path) for protocol in owners_of(path, self._protocols))


class Uploads:
    """Check that counts uploads in progress as documents, and rejects those beyond the limit.

    Routes reject them too late: FastAPI has received a form, and written its file to disk, when a route is called. On a
    server with API keys, a form that may have its key in the body is not counted as a document until it is received, so
    that strangers take no place of one and displace none.
    """

    def __init__(self, server: ServerState, paths: Collection[str]) -> None:
        self._server = server
        self._paths = frozenset(paths)
        self._without_key: Counter[str] = Counter()  # by address

    def __call__(self, arrival: Arrival) -> None:
        """Count an upload until it is received or interrupted. Raises `Draining` and `QueueFull`."""
        scope, receive = arrival.scope, arrival.receive
        if scope["method"] != "POST" or scope["path"] not in self._paths:
            return
        end = self._begin(scope)
        upload: ExitStack = scope["state"]["record"].resources.enter_context(ExitStack())
        upload.callback(end)

        async def receive_counted() -> Message:
            message = await receive()
            if not message.get("more_body", False):
                upload.close()
            return message

        arrival.receive = receive_counted

    def _begin(self, scope: Scope) -> Callable[[], None]:
        record, capacity = scope["state"]["record"], self._server.documents.capacity
        self._server.accept()
        if self._server.key_gate is None or record.key is not None:
            return partial(capacity.end_upload, capacity.begin_upload(record.client, self._num_bytes(scope)))
        address = record.client
        if self._without_key.total() >= _MAX_UPLOADS or self._without_key[address] >= _MAX_UPLOADS_OF_ADDRESS:
            message = "too many uploads without an API key in a header; send it there"
            raise QueueFull(message, _UPLOAD_RETRY_SECONDS)
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


_LONG_BYTES = 100_000
_NATIVE_PATHS = ("/v1/translate", "/")  # a request without a sign belongs to the native protocol there


class ProtocolDispatch:
    """Check at the gate that gives a request to a shared path the prefix of the protocol that its fields belong to.

    It reads the body of such a request, up to `max_body_bytes`, and replays it. The first protocol whose rule matches
    has the request; without a match, LibreTranslate or the native protocol, and if that is not selected, the first one
    with a rule. While no model accepts requests, the body is not read, and the error has the fields of all protocols
    that the request may belong to.
    """

    def __init__(self, protocols: Sequence[Protocol], max_body_bytes: int, admission: Admission) -> None:
        self._admission = admission
        self._max_body_bytes = max_body_bytes
        self._aliases = {alias: path for protocol in protocols for alias, path in protocol.aliases.items()}
        self._rules: dict[str, list[SharedPaths]] = {}
        for rule in [rule for protocol in protocols for rule in protocol.shared]:
            for path in rule.paths:
                self._rules.setdefault(path, []).append(rule)
        names = {protocol.name for protocol in protocols}
        self._prefixes = {
            path: "" if ("native" if path in _NATIVE_PATHS else "libretranslate") in names else rules[0].prefix
            for path, rules in self._rules.items()
        }

    def __call__(self, arrival: Arrival) -> Awaitable[None] | None:
        """Choose the protocol of one request."""
        scope, path = arrival.scope, arrival.paths[0]
        if path in self._aliases:
            self._move(arrival, self._aliases[path])
        elif path in self._rules and scope["method"] != "OPTIONS":
            self._move(arrival, self._prefixed(path, RequestFields(scope)))
            if self._has_readable_body(scope):
                return self._read(arrival, path)
        return None

    async def _read(self, arrival: Arrival, path: str) -> None:
        chosen = arrival.paths
        arrival.paths = (*chosen, *(rule.prefix + path for rule in reversed(self._rules[path])))
        self._admission(arrival)
        arrival.paths = chosen
        body, arrival.receive = await _read(arrival.receive, self._max_body_bytes)
        self._move(arrival, self._prefixed(path, RequestFields(arrival.scope, body)))
        if len(body) > _LONG_BYTES:
            await asyncio.sleep(0)  # the next one to parse it takes a turn of its own

    def _move(self, arrival: Arrival, path: str) -> None:
        arrival.scope["path"] = str(arrival.scope.get("root_path", "")) + path
        arrival.paths = (path_of(arrival.scope),)

    def _prefixed(self, path: str, fields: RequestFields) -> str:
        matching = (rule.prefix for rule in self._rules[path] if rule.owns(fields))
        return next(matching, self._prefixes[path]) + path

    def _has_readable_body(self, scope: Scope) -> bool:
        announced = header(scope, b"content-length")
        is_too_large = announced.isdecimal() and int(announced) > self._max_body_bytes
        is_multipart = header(scope, b"content-type").lower().startswith("multipart/")
        return scope["method"] == "POST" and not is_too_large and not is_multipart


async def _read(receive: Receive, max_bytes: int) -> tuple[bytes, Receive]:
    """Return the body, and a function that receives it again. Of a larger body, the beginning is returned."""
    messages: list[Message] = []
    num_bytes = 0
    while num_bytes <= max_bytes:
        messages.append(await receive())
        num_bytes += len(messages[-1].get("body", b""))
        if not messages[-1].get("more_body", False):
            break
    body = b"".join(message.get("body", b"") for message in messages)
    remaining = iter(messages)

    async def replay() -> Message:
        return next(remaining, None) or await receive()

    return body, replay
