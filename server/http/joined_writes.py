"""Connections whose responses are written with as few system calls as possible."""

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from server.http.requests.disconnect import CONNECTION

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application, ASGISendEvent, HTTPResponseStartEvent

_STATUS_LINES = {status.value: b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}
_BODILESS = (204, 304)
_LINGER_SECONDS = 5.0
_INVALID_NAME = re.compile(rb'[\x00-\x1f\x7f()<>@,;:\\[\]={} \t"]')
_INVALID_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class JoinedResponse(RequestResponseCycle):
    """uvicorn's cycle of a request and its response, whose head is written together with the beginning of the body.

    Two writes are two system calls and two packets, and wake a client twice. The application sends the beginning of a
    body as soon as it has sent the head.
    """

    _head = b""  # to be written with the next part of the body
    _ends_with_connection = False  # HTTP/1.0 has no chunks

    async def send(self, message: "ASGISendEvent") -> None:
        """Send the head or a part of the body. Waits while the client does not read."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.body" and self.response_started and not self.response_complete:
            self._send_body(message.get("body", b""), message.get("more_body", False))
        elif message["type"] == "http.response.start" and not self.response_started:
            self.response_started = True
            self.waiting_for_100_continue = False
            self._head = self._head_of(message)
        else:
            raise RuntimeError(f"message {message['type']} out of order")

    def _head_of(self, message: "HTTPResponseStartEvent") -> bytes:
        status = message["status"]
        headers = [*self.default_headers, *message.get("headers", ())]
        if _INVALID_NAME.search(b"".join([name for name, _ in headers])):
            raise RuntimeError("invalid name of a response header")
        if _INVALID_VALUE.search(b"".join([value for _, value in headers])):
            raise RuntimeError("invalid value of a response header")
        lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
        closes = False
        for name, value in headers:
            name = name.lower()
            if name == b"content-length" and self.chunked_encoding is None:
                self.expected_content_length, self.chunked_encoding = int(value), False
            elif name == b"transfer-encoding" and value.lower() == b"chunked":
                self.expected_content_length, self.chunked_encoding = 0, True
            elif name == b"connection" and b"close" in map(bytes.strip, value.lower().split(b",")):
                self.keep_alive, closes = False, True
            lines.append(b"%b: %b\r\n" % (name, value))
        if not self.keep_alive and not closes:
            lines.append(b"connection: close\r\n")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in _BODILESS:
            self._ends_with_connection = self.scope["http_version"] == "1.0"
            self.chunked_encoding = not self._ends_with_connection
            if self.chunked_encoding:
                lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)

    def _send_body(self, body: bytes, more_body: bool) -> None:
        if self.scope["method"] == "HEAD":
            self.expected_content_length, framed = 0, b""
        elif self.chunked_encoding:
            framed = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            framed += b"" if more_body else b"0\r\n\r\n"
        elif self._ends_with_connection:
            framed = body
        else:
            framed = body
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0:
                raise RuntimeError("the body is longer than its Content-Length")
        if head := self._head:
            self._head, framed = b"", head + framed
        if framed:
            self.transport.write(framed)
        if more_body:
            return
        if self.expected_content_length:
            raise RuntimeError("the body is shorter than its Content-Length")
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            if self.more_body:
                self.scope["state"][CONNECTION].close_after_body()
            else:
                self.transport.close()
        self.on_response()


class JoinedConnection(HttpToolsProtocol):
    """uvicorn's connection, whose responses are `JoinedResponse`. Requests find it in their scope."""

    is_lost = False
    _on_loss: Callable[[], None] | None = None
    _closing: asyncio.TimerHandle | None = None  # of a connection that waits for the rest of its last request
    _running: RequestResponseCycle | None = None  # started last; `cycle` may be one that waits behind it

    def call_on_loss(self, on_loss: Callable[[], None] | None) -> None:
        """Call a function when the connection is lost. None: no function any more."""
        self._on_loss = on_loss

    def close_after_body(self) -> None:
        """Close the connection when the rest of the request has arrived, which is not kept, or after some seconds.

        Closed at once, with bytes of the request unread, the response would be lost: the system resets the connection,
        and a proxy that still sends reports 502 (RFC 9112, section 9.6).
        """
        if self._closing is None:
            self._closing = self.loop.call_later(_LINGER_SECONDS, self.transport.close)

    def on_message_complete(self) -> None:
        """End the request's body, and the connection that waits for it."""
        super().on_message_complete()
        if self._closing is not None:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the request in progress, and call the function that waits for it."""
        super().connection_lost(exc)
        self.is_lost = True
        if self._closing is not None:
            self._closing.cancel()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        if self._on_loss is not None:
            self._on_loss()
        # A connection and its requests refer to each other, and full garbage collections are rare.
        self.pipeline.clear()
        self.cycle = self.scope = self._running = None  # type: ignore[assignment]

    def on_headers_complete(self) -> None:
        """Start the request, or queue it behind the one that the connection sent before."""
        version = self.parser.get_http_version()
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["http_version"] = version
        self.scope["path"] = self.root_path + (unquote(path) if "%" in path else path)
        self.scope["raw_path"] = self.root_path.encode("ascii") + url.path
        self.scope["query_string"] = url.query or b""
        self.scope["state"][CONNECTION] = self
        earlier: RequestResponseCycle | None = self.cycle  # None before the first request
        self.cycle = self._response(version)
        if earlier is None or earlier.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: "ASGI3Application") -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _response(self, version: str) -> JoinedResponse:
        return JoinedResponse(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
