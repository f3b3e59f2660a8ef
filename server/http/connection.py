"""HTTP connections: uvicorn's, with limits of size and time, and error responses below the application."""

import asyncio
import logging
import select
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from functools import partial

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from server.http.connection_table import ConnectionTable
from server.http.rejections import MALFORMED, TOO_MANY_CONNECTIONS, Rejection, as_bytes, rejection_of_head, too_long
from server.http.requests.disconnect import CONNECTION, LossReport
from server.operations.metrics import Metrics

_log = logging.getLogger("kvasir.request")

_PIECE_BYTES = 16 * 1024  # fed to the parser at once; the size of a head is checked between pieces
_MIN_BODY_BYTES_PER_SECOND = 10_000
# A body in chunks of one byte has five bytes of framing for each of its own.
_MAX_FRAMING_RATIO = 8
_ANSWERED_BEYOND_LIMIT = (b"/health/live", b"/health/ready", b"/metrics")
_UPGRADE_HEADERS = (b"upgrade", b"http2-settings")
_WATCH_SECONDS = 0.5  # between looks at a client whose requests wait


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Size and time limits of one connection.

    `max_head_bytes` holds for request line and headers together, and again for trailers and chunk extensions.
    `body_seconds` grows with the bytes received. `write_seconds` is the time without progress of a response.
    """

    max_head_bytes: int
    head_seconds: float
    body_seconds: float
    write_seconds: float


class _Phase(Enum):
    IDLE = "idle"
    HEAD = "head"
    BODY = "body"


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, which takes the place of a connection in its table."""

    on_lost: Callable[[], None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the place."""
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()


class LimitedConnection(HttpToolsProtocol):
    """uvicorn's connection with `limits`. Subclasses made by `limited_connection` have values for these attributes."""

    limits: ConnectionLimits
    metrics: Metrics
    table: ConnectionTable
    for_pages: bool
    websocket_paths: Collection[bytes]

    _phase = _Phase.IDLE
    _num_received = 0  # bytes since the connection was opened
    _framing_bytes = 0  # of the current head, or of the current body's framing
    _body_bytes = 0
    _has_boundary = False  # the current piece begins a message or ends its head
    _has_ignored_upgrade = False
    _unparsed = b""  # received behind requests that wait for their turn
    _running: RequestResponseCycle | None = None  # `cycle` may be one that waits behind it
    _rejection: Rejection | None = None
    _is_rejected = False
    _read_timer: asyncio.TimerHandle | None = None
    _read_began = 0.0
    _write_timer: asyncio.TimerHandle | None = None
    _unsent_bytes = 0  # when the write timer was last started
    _watch_timer: asyncio.TimerHandle | None = None
    _socket: LimitedWebSocket | None = None  # that the connection has become

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        self._loss = LossReport()
        self._enter(_Phase.HEAD)
        if not self.table.add(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and end the request in progress: uvicorn ends the last one, which may wait behind it."""
        for timer in (self._read_timer, self._write_timer, self._watch_timer):
            _cancel(timer)
        self.table.remove(self)
        super().connection_lost(exc)
        if self._running is not None:
            self._running.disconnected = True
            self._running.message_event.set()
        self._loss.report()
        # A connection and its requests refer to each other, and full garbage collections are rare.
        self.pipeline.clear()
        self.cycle = self.scope = self._running = None  # type: ignore[assignment]

    def close_idle(self) -> None:
        """Close the connection, which has no request in progress, without waiting for its client to read."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Feed the parser in small pieces, so that a head over the limit is rejected before it is gathered."""
        self._num_received += len(data)
        _cancel(self.timeout_keep_alive_task)
        if self._phase is _Phase.IDLE:
            self._enter(_Phase.HEAD)
        self._parse(self._unparsed + data if self._unparsed else data)

    def _parse(self, data: bytes) -> None:
        """Parse what was received, up to requests that wait for their turn. The rest is parsed when they are answered.

        A client that sends requests faster than it reads the responses must not fill the memory.
        """
        self._unparsed = b""
        for start in range(0, len(data), _PIECE_BYTES):
            if self._is_rejected or self.transport.is_closing():
                return
            if self._socket is not None:
                self._socket.data_received(data[start:])
                return
            if self.pipeline:
                self._unparsed = data[start:]
                self._pause_reading()
                return
            self._feed(data[start : start + _PIECE_BYTES])

    def _pause_reading(self) -> None:
        """Read no more until requests are answered. The event loop then misses the end of the connection."""
        self.flow.pause_reading()
        if self._watch_timer is None:
            self._watch_timer = self.loop.call_later(_WATCH_SECONDS, self._watch)

    def _watch(self) -> None:
        self._watch_timer = None
        if self.flow.read_paused and not self.transport.is_closing():
            ends = select.poll()
            ends.register(self.transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
            if ends.poll(0):
                self.transport.abort()
            else:
                self._pause_reading()

    def _feed(self, piece: bytes) -> None:
        framing_before, body_before = self._framing_bytes, self._body_bytes
        self._has_boundary = False
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            rest = piece[upgrade.args[0] :]
            if self._opens_websocket:
                self._become_websocket(rest)
            else:
                self._feed_without_upgrade(rest)
            return
        except httptools.HttpParserError:
            self._reject(self._rejection or MALFORMED)
            return
        if not self._has_boundary:
            self._framing_bytes = framing_before + len(piece) - (self._body_bytes - body_before)
        allowed = self.limits.max_head_bytes + _MAX_FRAMING_RATIO * self._body_bytes
        if self._phase is not _Phase.IDLE and self._framing_bytes > allowed:
            self._reject(too_long(self.limits.max_head_bytes, is_trailer=self._phase is _Phase.BODY))

    @property
    def _opens_websocket(self) -> bool:
        """Whether the request asks for a WebSocket where there is one, and no other is in progress."""
        wants = any(name == b"upgrade" and value.lower() == b"websocket" for name, value in self.headers)
        is_served = self.ws_protocol_class is not None and self.url.partition(b"?")[0] in self.websocket_paths
        return wants and is_served and self._running is None and not self.pipeline

    def _become_websocket(self, rest: bytes) -> None:
        """Leave the connection to a WebSocket, whose own limits hold from now on."""
        for timer in (self._read_timer, self._write_timer, self._watch_timer):
            _cancel(timer)
        self.connections.discard(self)
        self._socket = socket = LimitedWebSocket(self.config, self.server_state, self.app_state)
        socket.on_lost = partial(self.table.remove, self)
        self.table.set_idle(self, is_idle=False)
        head = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        head += [b"%s: %s" % header for header in self.headers]
        self.transport.set_protocol(socket)
        socket.connection_made(self.transport)
        socket.data_received(b"\r\n".join((*head, b"", rest)))

    def _feed_without_upgrade(self, rest: bytes) -> None:
        """Parse the request again without its upgrade, which a server may ignore (RFC 9110, section 7.8).

        httptools reads no body after the head of an upgrade.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._reject(Rejection(405, "method_not_allowed", "method CONNECT is not allowed"))
            return
        lines = [b"%s %s HTTP/1.1" % (method, self.url)]
        for name, value in self.headers:
            if name == b"connection":
                tokens = [token.strip() for token in value.split(b",")]
                value = b", ".join(token for token in tokens if token.lower() not in _UPGRADE_HEADERS)
            if name not in _UPGRADE_HEADERS and (value or name != b"connection"):
                lines.append(b"%s: %s" % (name, value))
        self._has_ignored_upgrade = False
        self.parser = httptools.HttpRequestParser(self)
        for piece in (b"\r\n".join((*lines, b"", b"")), rest):
            if piece and not self._is_rejected:
                self._feed(piece)

    def on_message_begin(self) -> None:
        """Begin a new head."""
        super().on_message_begin()
        self._enter(_Phase.HEAD)

    def on_url(self, url: bytes) -> None:
        """Add to the request target."""
        self._framing_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Trailers are ignored: headers must not change after the application has read them."""
        self._framing_bytes += len(name) + len(value)
        if self._phase is _Phase.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request, unless its head is rejected or it is parsed again without its upgrade."""
        version, max_bytes = self.parser.get_http_version(), self.limits.max_head_bytes
        self._rejection = rejection_of_head(version, self.url, self.headers, max_bytes)
        if self._rejection is None and self.table.is_full and self.url not in _ANSWERED_BEYOND_LIMIT:
            self._rejection = TOO_MANY_CONNECTIONS
        if self._rejection is not None:
            raise ValueError(self._rejection.message)
        if self.parser.should_upgrade():
            self._has_ignored_upgrade = True
            return
        self.scope["state"][CONNECTION] = self._loss
        super().on_headers_complete()
        if not self.pipeline:
            self._running = self.cycle
        self._enter(_Phase.BODY)

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request's body."""
        if self._has_ignored_upgrade:
            return
        self._phase = _Phase.IDLE
        self._has_boundary = True
        _cancel(self._read_timer)
        super().on_message_complete()
        self._note_idle()

    def on_response_complete(self) -> None:
        """Go on with what waits, and watch the rest of the response, which may be unsent when the connection closes."""
        self._running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        if self._unparsed and not self.pipeline and not self.transport.is_closing():
            self._parse(self._unparsed)
        if self.pipeline:  # uvicorn reads on after each response
            self._pause_reading()
        self._note_idle()
        if self.transport.get_write_buffer_size():
            self._start_write_timer()

    def pause_writing(self) -> None:
        """Watch whether the response makes progress."""
        super().pause_writing()
        self._start_write_timer()

    def _note_idle(self) -> None:
        self.table.set_idle(self, is_idle=self._running is None and self._phase is not _Phase.BODY)

    def _enter(self, phase: _Phase) -> None:
        self._phase = phase
        self._framing_bytes = self._body_bytes = 0
        self._has_boundary = True
        self._note_idle()
        _cancel(self._read_timer)
        self._read_began = self.loop.time()
        seconds = self.limits.head_seconds if phase is _Phase.HEAD else self.limits.body_seconds
        self._read_timer = self.loop.call_later(seconds, self._on_read_timeout)

    def _on_read_timeout(self) -> None:
        if self.flow.read_paused:  # by the application, or by requests that wait for their turn
            self._read_began = self.loop.time()
        allowed = self.limits.head_seconds
        if self._phase is _Phase.BODY:
            allowed = self.limits.body_seconds + self._body_bytes / _MIN_BODY_BYTES_PER_SECOND
        remaining = self._read_began + allowed - self.loop.time()
        if remaining > 0:
            self._read_timer = self.loop.call_later(remaining, self._on_read_timeout)
            return
        if not self._num_received:
            self.transport.close()  # a connection opened in advance
            return
        message = f"the request's {self._phase.value} was not received in time; send it faster"
        self._reject(Rejection(408, "request_timeout", message))

    def _start_write_timer(self) -> None:
        _cancel(self._write_timer)
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(self.limits.write_seconds, self._on_write_timeout)

    def _on_write_timeout(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if not unsent:
            return
        if unsent < self._unsent_bytes or (self.flow.write_paused is False and not self.transport.is_closing()):
            self._start_write_timer()
            return
        self.metrics.connection_aborted()
        fields = {"client": self._client_address, "unsent_bytes": unsent}
        _log.warning("connection aborted: response not read", extra=fields)
        self.transport.abort()

    @property
    def _client_address(self) -> str:
        return self.client[0] if self.client else ""

    def _reject(self, rejection: Rejection) -> None:
        """Answer with an error unless another response is due on this connection, and close it."""
        self._is_rejected = True
        self.metrics.answered("unknown", rejection.status, "invalid", self.loop.time() - self._read_began)
        fields = {"status": rejection.status, "code": rejection.code, "client": self._client_address}
        _log.info("request rejected before it was parsed", extra=fields)
        _cancel(self._read_timer)
        cycle = self._running
        if cycle is not None:
            if self._phase is not _Phase.BODY or cycle is not self.cycle or cycle.response_started:
                cycle.keep_alive = False  # the earlier response is finished first, and is the last one
                self.pipeline.clear()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(as_bytes(rejection, for_pages=self.for_pages))
        self._start_write_timer()
        self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def limited_connection(
    limits: ConnectionLimits,
    metrics: Metrics,
    table: ConnectionTable,
    for_pages: bool = False,
    websocket_paths: Collection[bytes] = (),
) -> type[LimitedConnection]:
    """Return the connection class for a server with these limits; with `for_pages`, web pages can read its errors."""
    shared = {"limits": limits, "metrics": metrics, "table": table, "for_pages": for_pages}
    shared["websocket_paths"] = websocket_paths
    return type("LimitedConnection", (LimitedConnection,), shared)
