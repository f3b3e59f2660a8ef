"""The outermost middleware: request ids, timing headers, metrics, and one log line for each request."""

import asyncio
import contextlib
import logging
import random
import re
import time
from collections.abc import Callable, Collection, Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.requests.parameters import close_forms, header, path_of
from server.http.responses.errors import CLIENT_GONE_STATUS, ErrorFormats, error_response
from server.http.state import RequestRecord, ServerState, milliseconds
from server.interface.client_identity import client_of_call
from server.interface.errors import EngineFailed
from server.interface.request import FinishReason
from server.operations.api_keys.key_file import without_secrets
from server.operations.tracing import Attribute, RequestTrace, trace_of_call

_log = logging.getLogger("kvasir.request")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_UNKNOWN_ENDPOINT = "unknown"  # label of all paths without a route; clients could make up any number of them
_UNTRACED = ("/health/live", "/health/ready", "/metrics")  # every few seconds, and of no interest
_MAX_PATH_CHARACTERS = 200
_LINGER_SECONDS = 5.0
_WINDOW_SECONDS = 10.0
_MAX_LINES = 10  # of one status in a window
_REFUSED = frozenset({401, 403, 408, 413, 429, 431, 503})
_OUTCOMES = {429: "rejected", 503: "rejected", 504: "timeout", CLIENT_GONE_STATUS: "cancelled"}


class RequestRecorder:
    """ASGI middleware around all others. It turns every exception into a response.

    A response that ends its connection before the request's body was received is completed when the rest has arrived,
    which is not kept, or after five seconds. Closed at once, with bytes of the request unread, the response would be
    lost: the system resets the connection, and a proxy that still sends reports 502 (RFC 9112, section 9.6).

    `endpoints` are the paths of routes; they name requests that are rejected before their route is called.
    """

    def __init__(
        self,
        app: ASGIApp,
        server: ServerState,
        formats: ErrorFormats,
        endpoints: Collection[str] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._app = app
        self._endpoints = frozenset(endpoints)
        self._server = server
        self._formats = formats
        self._clock = clock
        self._refusals = RefusalSampling()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] == "websocket":
            await self._converse(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = self._begin(scope)
        if self._server.tracing is not None and path_of(scope) not in _UNTRACED:
            record.trace = self._server.tracing.begin(Headers(scope=scope))
            trace_of_call.set(record.trace)
        status, seconds = 0, 0.0
        closes, is_received = False, not _has_body(scope)

        async def receive_noted() -> Message:
            nonlocal is_received
            message = await receive()
            is_received = not message.get("more_body", False)
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal status, seconds, closes
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                headers.append((b"x-request-id", record.id.encode()))
                if record.trace is not None:
                    headers.append((b"traceparent", record.trace.traceparent.encode()))
                if not record.is_streamed:  # the last event of a stream has its timings
                    headers.append((b"server-timing", _server_timing(record).encode()))
                closes = (b"connection", b"close") in headers
                if self._server.draining and not closes:
                    headers.append((b"connection", b"close"))
                    closes = True
                message["headers"] = headers
            elif not message.get("more_body", False):
                seconds = record.elapsed_seconds()
                if closes and not is_received:
                    await send({**message, "more_body": True})
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_LINGER_SECONDS):
                            while not is_received:
                                await receive_noted()
                    message = {"type": "http.response.body", "body": b""}
            await send(message)

        self._server.begin_request()
        try:
            await self._app(scope, receive_noted, send_with_headers)
        except Exception:  # noqa: BLE001 - logged and answered; the server keeps running
            _log.exception("unexpected exception", extra={"id": record.id})
            if not status:
                failure = EngineFailed(
                    "internal error; the server log has the cause under this request's `X-Request-ID`"
                )
                await error_response(failure, self._formats.of(scope))(scope, receive, send_with_headers)
            status = 500
        finally:
            self._server.end_request()
            await close_forms(scope)
            record.resources.close()
            if self._server.key_gate is not None and (record.late_status or status or 500) >= 400:
                for charge in record.charges:
                    self._server.key_gate.refund(charge)
            # A status of 0: uvicorn cancelled the request because the drain timeout expired.
            last = record.late_status or status or CLIENT_GONE_STATUS
            self._finish(scope, record, last, seconds or record.elapsed_seconds())
            # uvicorn keeps the scope until the next request of the connection, and then in a cycle.
            record.result = None

    def _begin(self, scope: Scope) -> RequestRecord:
        begun = self._clock()
        record = RequestRecord(
            _request_id(header(scope, b"x-request-id")),
            client=str((scope.get("client") or ("",))[0]),
            elapsed_seconds=lambda: self._clock() - begun,
        )
        scope.setdefault("state", {})["record"] = record
        client_of_call.set(record.client)
        return record

    async def _converse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a WebSocket, from its handshake to its end, as one request."""
        record, status = self._begin(scope), 0

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "websocket.accept":
                status = 101
            elif message["type"] == "websocket.http.response.start":
                status = message["status"]
            await send(message)

        self._server.begin_request()
        try:
            await self._app(scope, receive, send_noted)
        except Exception:
            _log.exception("unexpected exception", extra={"id": record.id})
            status = 500
            raise
        finally:
            self._server.end_request()
            self._finish({**scope, "method": "WEBSOCKET"}, record, status or 500, record.elapsed_seconds())

    def _finish(self, scope: Scope, record: RequestRecord, status: int, seconds: float) -> None:
        endpoint = str(getattr(scope.get("route"), "path", "") or self._endpoint_of(scope))
        outcome = _outcome(status)
        trace = record.trace
        trace_id = trace.trace_id if trace is not None and trace.is_sampled else None
        self._server.metrics.answered(endpoint, status, outcome, seconds, trace_id)
        if record.result is not None:
            self._server.metrics.translated(record.result)
        self._server.activity.count(
            record.model, record.key, record.num_characters, record.result, is_rejected=outcome == "rejected"
        )
        if trace is not None:
            _end_trace(trace, scope, record, endpoint, status)
        # Successful probes, scrapes and page files are frequent and carry no information.
        is_routine = status in (200, 304) and not record.num_texts
        level = logging.DEBUG if is_routine else logging.INFO
        left_out = self._refusals.select(status)
        if left_out is None or not _log.isEnabledFor(level):
            return
        fields: dict[str, object] = {
            "id": record.id,
            "method": scope["method"],
            "endpoint": endpoint,
            "status": status,
            "outcome": outcome,
            **({} if record.key is None else {"key": record.key.id}),
            **({} if trace is None else {"trace": trace.trace_id}),
            **({"left_out": left_out} if left_out else {}),
            "milliseconds": milliseconds(seconds),
            **_sizes(record),
        }
        if endpoint == _UNKNOWN_ENDPOINT:
            fields["path"] = str(scope["path"])[:_MAX_PATH_CHARACTERS]
        _log.log(level, "request", extra=fields)

    def _endpoint_of(self, scope: Scope) -> str:
        path = path_of(scope)
        return path if path in self._endpoints else _UNKNOWN_ENDPOINT


class RefusalSampling:
    """Selects the refusals to log: the first ten of each status in ten seconds. The others are counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[int, tuple[float, int]] = {}  # by status: begin, number of refusals

    def select(self, status: int) -> int | None:
        """Return None for a line to leave out, else the number of lines of this status left out before it."""
        if status not in _REFUSED:
            return 0
        now = self._clock()
        begun, count = self._windows.get(status, (now, 0))
        left_out = 0
        if now - begun >= _WINDOW_SECONDS:
            left_out, begun, count = max(count - _MAX_LINES, 0), now, 0
        self._windows[status] = begun, count + 1
        return left_out if count < _MAX_LINES else None


def _has_body(scope: Scope) -> bool:
    return header(scope, b"content-length") not in ("", "0") or bool(header(scope, b"transfer-encoding"))


def _end_trace(trace: RequestTrace, scope: Scope, record: RequestRecord, endpoint: str, status: int) -> None:
    """End the span of a request, with the names of OpenTelemetry's conventions and never with a text."""
    attributes: dict[str, Attribute] = {
        "http.request.method": scope["method"],
        "http.route": endpoint,
        "http.response.status_code": status,
        "kvasir.request_id": record.id,
    }
    attributes |= {f"kvasir.{name}": value for name, value in _sizes(record).items() if isinstance(value, str | int)}
    error = f"status {status}" if status >= 500 else None
    trace.end(f"{scope['method']} {endpoint}", attributes, record.phase_seconds(), error)


def _sizes(record: RequestRecord) -> Mapping[str, object]:
    if not record.num_texts:
        return {}
    fields: dict[str, object] = {
        "model": record.model,
        "texts": record.num_texts,
        "characters": record.num_characters,
    }
    if (result := record.result) is not None:
        fields |= {
            "sentences": result.sentence_tokens.num_sentences,
            "source_tokens": result.sentence_tokens.num_source_tokens,
            "target_tokens": result.sentence_tokens.num_target_tokens,
            "finish_reason": str(FinishReason.of_all(translation.finish_reason for translation in result.translations)),
            **{f"{name}_milliseconds": milliseconds(phase) for name, phase in result.phases.by_name().items()},
        }
    return fields


def _server_timing(record: RequestRecord) -> str:
    """Return the durations of the four phases and the total: https://www.w3.org/TR/server-timing/."""
    return ", ".join([f"{name};dur={duration}" for name, duration in record.timings().items()])


def _outcome(status: int) -> str:
    if status in _OUTCOMES:
        return _OUTCOMES[status]
    return "ok" if status < 400 else "invalid" if status < 500 else "error"


def _request_id(given: str) -> str:
    """Return the client's request id if it is fit for a log line and a trace, else a new one."""
    if given and _REQUEST_ID.fullmatch(given) and without_secrets(given) == given:
        return given
    return f"{random.getrandbits(128):032x}"  # no secret, and faster than a call of the system for each request
