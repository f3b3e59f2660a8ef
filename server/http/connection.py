"""HTTP connections: uvicorn's, with limits of number, size and time, and error responses below the application."""

import asyncio
import logging
import resource
import select
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

import httptools
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from server.http.responses.errors import NATIVE, http_error_response
from server.operations.metrics import Metrics
from server.operations.settings import Settings

_log = logging.getLogger("kvasir.request")

_PIECE_BYTES = 16 * 1024  # fed to the parser at once; the size of a head is checked between pieces
_MIN_BODY_BYTES_PER_SECOND = 10_000
_MAX_FRAMING_RATIO = 8  # a body in chunks of one byte has five bytes of framing for each of its own
_ANSWERED_BEYOND_LIMIT = (b"/health/live", b"/health/ready", b"/metrics")
_UPGRADE_HEADERS = (b"connection", b"upgrade", b"http2-settings")
_WEBSOCKET_PATH = b"/v1/live"
_SWEEP_SECONDS = 0.25  # between looks at all connections
_SWEPT_AT_ONCE = 500  # in one iteration of the event loop
_LOG_SECONDS = 5.0
_MAX_HEAD_BYTES = 64 * 1024  # of request line and headers together, and again of trailers and chunk extensions
_TOO_LONG = f"address and headers, or trailers, must have at most {_MAX_HEAD_BYTES} bytes; send texts in the body"


class ConnectionTable:
    """Open connections, of which `max_busy` may have a request in progress, and a watch over the time of each.

    `num_reserved` more may be open, for health probes, for metrics and for the refusal of all other requests. Beyond
    that, each new connection closes the one that has been idle for longest, or is refused. A connection is idle
    until it has sent the head of a request.
    """

    def __init__(self, max_busy: int, num_reserved: int) -> None:
        self.max_busy, self._max_open = max_busy, max_busy + num_reserved
        self._open: set[LimitedConnection] = set()
        self._idle: dict[LimitedConnection, None] = {}  # the first has been idle for longest
        self._num_closed, self._next_log = 0, 0.0
        self._is_watching = False

    @classmethod
    def of_process(cls) -> "ConnectionTable":
        """Return a table for the descriptors that are left, after raising their limit as far as the process may.

        An eighth of all is for files and processes, and another for connections without a request.
        """
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = 1 << 20 if hard == resource.RLIM_INFINITY else min(hard, 1 << 20)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        num_used, reserve = sum(1 for _ in Path("/dev/fd").iterdir()), min(max(limit // 8, 16), 2048)
        return cls(max(limit - num_used - 2 * reserve, 8), reserve)

    def add(self, connection: "LimitedConnection") -> bool:
        """Add a new connection. Return whether there is room for it."""
        if len(self._open) >= self._max_open:
            self._num_closed += 1
            if (now := time.monotonic()) >= self._next_log:
                fields = {"closed": self._num_closed, "limit": self.max_busy}
                _log.warning("connections closed: no file descriptors for more", extra=fields)
                self._num_closed, self._next_log = 0, now + _LOG_SECONDS
            if (oldest := next(iter(self._idle), None)) is None:
                return False
            self.remove(oldest)
            oldest.transport.abort()  # without waiting for its client to read
        self._open.add(connection)
        self._idle[connection] = None
        if not self._is_watching:
            self._is_watching = True
            connection.loop.call_later(_SWEEP_SECONDS, self._sweep, connection.loop, iter(()))
        return True

    def set_idle(self, connection: "LimitedConnection", *, is_idle: bool) -> None:
        """Note that a connection waits for a request, or works on one."""
        self._idle.pop(connection, None)
        if is_idle and connection in self._open:
            self._idle[connection] = None

    def remove(self, connection: "LimitedConnection") -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    @property
    def is_full(self) -> bool:
        """Whether as many connections as may have a request in progress."""
        return len(self._open) - len(self._idle) >= self.max_busy

    def _sweep(self, loop: asyncio.AbstractEventLoop, remaining: Iterator["LimitedConnection"]) -> None:
        """Check the time of connections. One timer for all of them costs a request less than timers of its own."""
        if batch := list(islice(remaining, _SWEPT_AT_ONCE)):
            for connection in self._open.intersection(batch):
                connection.check_time(loop.time())
            loop.call_soon(self._sweep, loop, remaining)
        elif self._open:
            loop.call_later(_SWEEP_SECONDS, self._sweep, loop, iter(list(self._open)))
        else:
            self._is_watching = False


class LimitedConnection(HttpToolsProtocol):
    """uvicorn's connection with limits. uvicorn calls it with the other arguments; see `functools.partial`."""

    def __init__(self, settings: Settings, metrics: Metrics, table: ConnectionTable, **others: Any) -> None:  # noqa: ANN401
        super().__init__(**others)
        self._settings, self._metrics, self._table = settings, metrics, table
        self._running: RequestResponseCycle | None = None  # `cycle` may be one that waits behind it
        self._unparsed = b""  # received behind requests that wait for their turn
        self._is_rejected = self._has_ignored_upgrade = False
        self._unsent, self._sent_last = 0, 0.0
        self._socket: asyncio.Protocol | None = None  # that the connection has become

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        self._client_field = {"client": self.client[0] if self.client else ""}
        self._enter("new")
        if not self._table.add(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the request in progress: uvicorn ends the last one, which may wait behind it."""
        self._table.remove(self)
        super().connection_lost(exc)
        if (cycle := self._running) is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        # A connection and its requests refer to each other, and full garbage collections are rare.
        self.pipeline.clear()
        self.cycle = self.scope = self._running = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Parse what was received, up to requests that wait for their turn. The rest is parsed when they are answered.

        A client that sends requests faster than it reads the responses must not fill the memory.
        """
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        if self._phase in ("new", "idle"):
            self._enter("head")
        data, self._unparsed = self._unparsed + data, b""
        for start in range(0, len(data), _PIECE_BYTES):
            if self._is_rejected or self.transport.is_closing():
                return
            if self._socket is not None:
                self._socket.data_received(data[start:])
                return
            if self.pipeline:
                self._unparsed = data[start:]
                self.flow.pause_reading()
                return
            self._feed(data[start : start + _PIECE_BYTES])

    def _feed(self, piece: bytes) -> None:
        """Parse a piece, so small that a head over the limit is rejected before it is gathered."""
        self._has_boundary, num_body = False, self._num_body
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            rest = piece[upgrade.args[0] :]
            self._become_websocket(rest) if self._opens_websocket() else self._feed_without_upgrade(rest)
            return
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._reject(cause if isinstance(cause, HTTPException) else HTTPException(400, "not valid HTTP/1.1"))
            return
        if not self._has_boundary:
            self._num_framing += len(piece) - (self._num_body - num_body)
        if self._num_framing > _MAX_HEAD_BYTES + _MAX_FRAMING_RATIO * self._num_body:
            self._reject(HTTPException(431, _TOO_LONG))

    def _opens_websocket(self) -> bool:
        """Return whether the request asks for a WebSocket where there is one, and no other is in progress."""
        wants = any(name == b"upgrade" and value.lower() == b"websocket" for name, value in self.headers)
        is_served = self.url.partition(b"?")[0] == _WEBSOCKET_PATH and "live" in self._settings.protocols
        is_alone = self._running is None and not self.pipeline
        return wants and is_served and is_alone and self.ws_protocol_class is not None

    def _become_websocket(self, rest: bytes) -> None:
        """Leave the connection to a WebSocket, whose own limits hold from now on, and that of unread responses."""
        self._enter("idle")
        self._table.set_idle(self, is_idle=False)
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.handle_websocket_upgrade()
        self._socket = cast(asyncio.Protocol, self.transport.get_protocol())
        self._socket.data_received(rest)

    def _feed_without_upgrade(self, rest: bytes) -> None:
        """Parse the request again without its upgrade, which a server may ignore (RFC 9110, section 7.8).

        httptools reads no body after the head of an upgrade.
        """
        if (method := self.parser.get_method()) == b"CONNECT":
            self._reject(HTTPException(405))
            return
        is_last = any(name == b"connection" and b"close" in value.lower() for name, value in self.headers)
        lines = [b"%s %s HTTP/1.1" % (method, self.url), *([b"connection: close"] if is_last else [])]
        lines += [b"%s: %s" % header for header in self.headers if header[0] not in _UPGRADE_HEADERS]
        self._has_ignored_upgrade = False
        self.parser = httptools.HttpRequestParser(self)
        for piece in (b"\r\n".join((*lines, b"", b"")), rest):
            if piece and not self._is_rejected:
                self._feed(piece)

    def on_message_begin(self) -> None:
        """Begin a new head."""
        super().on_message_begin()
        if self._phase != "head" or self._num_framing:
            self._enter("head")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Trailers are ignored: headers must not change after the application has read them."""
        if self._phase == "head":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request, unless its head is rejected or it is parsed again without its upgrade."""
        if len(self.url) >= _MAX_HEAD_BYTES:  # uvicorn reports one of 64 KB as malformed
            raise HTTPException(431, _TOO_LONG)
        if self._table.is_full and self.url not in _ANSWERED_BEYOND_LIMIT:
            raise HTTPException(503, "the server has no file descriptors left; retry in a moment", {"Retry-After": "1"})
        self._has_ignored_upgrade = self.parser.should_upgrade()
        if not self._has_ignored_upgrade:
            super().on_headers_complete()
            if not self.pipeline:
                self._running = self.cycle
            self._enter("body")

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._num_body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request's body."""
        if not self._has_ignored_upgrade:
            self._enter("idle")
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with what waits."""
        self._running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        if self._unparsed and not self.pipeline and not self.transport.is_closing():
            self.data_received(b"")
        if self.pipeline:  # uvicorn reads on after each response
            self.flow.pause_reading()
        self._note_idle()

    def _enter(self, phase: Literal["new", "idle", "head", "body"]) -> None:
        self._phase, self._read_began = phase, self.loop.time()
        self._num_framing = self._num_body = 0  # bytes of the head or of the body's framing, and of the body
        self._has_boundary = True  # the present piece has the beginning or the end of a head or a body
        self._note_idle()

    def _note_idle(self) -> None:
        self._table.set_idle(self, is_idle=self._running is None and self._phase != "body")

    def check_time(self, now: float) -> None:
        """End a connection whose client sends or reads too slowly, or has left the requests that wait."""
        if self._socket is not None and self.transport.is_closing():  # its own protocol is told of the end
            self._table.remove(self)
            return
        allowed = self._settings.header_timeout_seconds
        if self._phase == "body":
            allowed = self._settings.body_timeout_seconds + self._num_body / _MIN_BODY_BYTES_PER_SECOND
        if self.flow.read_paused:  # by the application, or by requests that wait for their turn
            self._read_began = now
            if self.pipeline:  # while it reads nothing, the event loop misses the end of a connection
                ends = select.poll()
                ends.register(self.transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
                if ends.poll(0):
                    self.transport.abort()
        elif self._phase != "idle" and now - self._read_began > allowed and not self._is_rejected:
            if self._phase == "new":
                self.transport.close()  # it was opened in advance
            else:
                message = f"the request's {self._phase} was not received in time; send it faster"
                self._reject(HTTPException(408, message))
        if (unsent := self.transport.get_write_buffer_size()) != self._unsent or not unsent:
            self._unsent, self._sent_last = unsent, now
        elif now - self._sent_last > self._settings.write_timeout_seconds:
            self._metrics.aborted_connections.inc()
            _log.warning("connection aborted: response not read", extra=self._client_field | {"unsent_bytes": unsent})
            self.transport.abort()

    def _reject(self, error: HTTPException) -> None:
        """Answer with an error unless another response is due on this connection, and close it."""
        self._is_rejected = True
        self._metrics.answered("unknown", error.status_code, "invalid", self.loop.time() - self._read_began)
        fields = self._client_field | {"status": error.status_code, "cause": error.detail}
        _log.info("request rejected before it was parsed", extra=fields)
        if (cycle := self._running) is not None:
            if self._phase != "body" or cycle is not self.cycle or cycle.response_started:
                cycle.keep_alive = False  # the earlier response is finished first, and is the last one
                self.pipeline.clear()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        response = http_error_response(error, "CONNECT", NATIVE)
        response.headers["Connection"] = "close"
        if self._settings.cors_origins:  # the origin is unknown, and the response contains nothing secret
            response.headers["Access-Control-Allow-Origin"] = "*"
        headers = (b"%s: %s\r\n" % header for header in response.raw_headers)
        self.transport.write(b"".join((STATUS_LINE[error.status_code], *headers, b"\r\n", bytes(response.body))))
        self.transport.close()
