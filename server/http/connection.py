"""HTTP connections: size limits, timeouts, and error responses below the application."""

import asyncio
import logging
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import httptools
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from server.http.connection_limits import ConnectionLimits
from server.http.connection_table import ConnectionTable
from server.http.joined_writes import JoinedConnection
from server.http.paused_reading import DisconnectWatch, WatchedFlow
from server.http.rejections import MALFORMED, TOO_MANY_CONNECTIONS, Rejection, as_bytes, rejection_of_head, too_long
from server.http.request_turns import PROBES, RequestTurns
from server.operations.metrics import Metrics

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

_log = logging.getLogger("kvasir.request")

_PIECE_BYTES = 16 * 1024  # fed to the parser at once; the size of a head is checked between pieces
_MIN_BODY_BYTES_PER_SECOND = 10_000
# A body in chunks of one byte has five bytes of framing for each of its own.
_MAX_FRAMING_RATIO = 8
_ANSWERED_BEYOND_LIMIT = (*PROBES, b"/metrics")
_UPGRADE_HEADERS = (b"upgrade", b"http2-settings")


class _Phase(Enum):
    IDLE = "idle"
    HEAD = "head"
    BODY = "body"


class LimitedConnection(JoinedConnection):
    """uvicorn's connection with `limits`. Subclasses made by `limited_connection` have values for these attributes."""

    limits: ConnectionLimits
    metrics: Metrics
    table: ConnectionTable
    turns: RequestTurns
    for_pages: bool
    watch: DisconnectWatch

    _is_excess = False
    _phase = _Phase.IDLE
    _num_received = 0  # bytes since the connection was opened
    _framing_bytes = 0  # of the current head, or of the current body's framing
    _body_bytes = 0
    _has_boundary = False  # the current piece begins a message or ends its head
    _has_ignored_upgrade = False
    _unparsed = b""  # received behind requests that wait for their turn
    _rejection: Rejection | None = None
    _is_rejected = False
    _read_timer: asyncio.TimerHandle | None = None
    _read_began = 0.0
    _write_timer: asyncio.TimerHandle | None = None
    _unsent_bytes = 0  # when the write timer was last started

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        self.flow = WatchedFlow(transport, self.watch)
        is_accepted, self._is_excess = self.table.add(self)
        self._enter(_Phase.HEAD)
        if not is_accepted:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_read_timer()
        self._stop_write_timer()
        self.table.remove(self)
        self.flow.resume_reading()
        super().connection_lost(exc)

    def close_idle(self) -> None:
        """Close the connection, which has no request in progress, without waiting for its client to read."""
        self.transport.abort()

    @property
    def _has_request(self) -> bool:
        return self._running is not None and not self._running.response_complete

    def data_received(self, data: bytes) -> None:
        """Feed the parser in small pieces, so that a head over the limit is rejected before it is gathered."""
        self._num_received += len(data)
        self._parse(self._unparsed + data if self._unparsed else data)

    def _parse(self, data: bytes) -> None:
        """Parse what was received, up to requests that wait for their turn. The rest is parsed when they are answered.

        A client that sends requests faster than it reads the responses must not fill the memory.
        """
        self._unset_keepalive_if_required()
        self._unparsed = b""
        if self._phase is _Phase.IDLE:
            self._enter(_Phase.HEAD)
        for start in range(0, len(data), _PIECE_BYTES):
            if self._is_rejected or self.transport.is_closing():
                return
            if self.pipeline:
                self._unparsed = data[start:]
                self.flow.pause_reading()
                return
            self._feed(data[start : start + _PIECE_BYTES])

    def _feed(self, piece: bytes) -> None:
        framing_before, body_before = self._framing_bytes, self._body_bytes
        self._has_boundary = False
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._feed_without_upgrade(piece[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            self._reject(self._rejection or MALFORMED)
            return
        if not self._has_boundary:
            self._framing_bytes = framing_before + len(piece) - (self._body_bytes - body_before)
        allowed = self.limits.max_head_bytes + _MAX_FRAMING_RATIO * self._body_bytes
        if self._phase is not _Phase.IDLE and self._framing_bytes > allowed:
            self._reject(too_long(self.limits.max_head_bytes, is_trailer=self._phase is _Phase.BODY))

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
        if self._rejection is None and self._is_excess and self.url not in _ANSWERED_BEYOND_LIMIT:
            self._rejection = TOO_MANY_CONNECTIONS
        if self._rejection is not None:
            raise ValueError(self._rejection.message)
        if self.parser.should_upgrade():
            self._has_ignored_upgrade = True
            return
        super().on_headers_complete()
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
        self._stop_read_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Watch the rest of the response, which may be unsent when the connection is closed."""
        super().on_response_complete()
        if self._unparsed and not self.pipeline and not self.transport.is_closing():
            self._parse(self._unparsed)
        if self.pipeline:  # uvicorn reads on after each response
            self.flow.pause_reading()
        if self._phase is _Phase.IDLE and not self._has_request:
            self.table.set_idle(self, is_idle=True)
        if self.transport.get_write_buffer_size():
            self._start_write_timer()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: "ASGI3Application") -> None:
        self._running = cycle
        self.turns.begin(partial(super()._start_asgi_task, cycle, app), cycle.scope)

    def pause_writing(self) -> None:
        """Watch whether the response makes progress."""
        super().pause_writing()
        self._start_write_timer()

    def _enter(self, phase: _Phase) -> None:
        self._phase = phase
        self._framing_bytes = self._body_bytes = 0
        self._has_boundary = True
        self.table.set_idle(self, is_idle=phase is _Phase.HEAD and not self._has_request)
        self._stop_read_timer()
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

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _start_write_timer(self) -> None:
        self._stop_write_timer()
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
        _log.warning("connection aborted: response not read", extra={"client": self._client, "unsent_bytes": unsent})
        self.transport.abort()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    @property
    def _client(self) -> str:
        return self.client[0] if self.client else ""

    def _reject(self, rejection: Rejection) -> None:
        """Answer with an error unless another response is due on this connection, and close it."""
        self._is_rejected = True
        if self._closing is not None:  # after its last response
            self.transport.close()
            return
        self.metrics.answered("unknown", rejection.status, "invalid", self.loop.time() - self._read_began)
        fields = {"status": rejection.status, "code": rejection.code, "client": self._client}
        _log.info("request rejected before it was parsed", extra=fields)
        self._stop_read_timer()
        cycle = self._running
        if cycle is not None and not cycle.response_complete:
            if self._phase is not _Phase.BODY or cycle is not self.cycle or cycle.response_started:
                cycle.keep_alive = False  # the earlier response is finished first, and is the last one
                self.pipeline.clear()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(as_bytes(rejection, for_pages=self.for_pages))
        self._start_write_timer()
        self.transport.close()


def limited_connection(
    limits: ConnectionLimits, metrics: Metrics, table: ConnectionTable, turns: RequestTurns, for_pages: bool = False
) -> type[LimitedConnection]:
    """Return the connection class for a server with these limits; with `for_pages`, web pages can read its errors."""
    shared = {"limits": limits, "metrics": metrics, "table": table, "turns": turns, "for_pages": for_pages}
    return type("LimitedConnection", (LimitedConnection,), {**shared, "watch": DisconnectWatch()})
