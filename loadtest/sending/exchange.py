"""One request and its answer: sends bytes at the right instant and returns a record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import gevent
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError, HTTPSocketResponse

from loadtest.results.records import Outcome, Record, answer_digest
from loadtest.sending.addresses import Address
from loadtest.sending.connections import CannotConnect, Connections, read_head
from loadtest.sending.protocols import (
    DONE_EVENT,
    ERROR_EVENT,
    EVENTS_TYPE,
    TEXT_EVENT,
    Answer,
    Event,
    EventReader,
    HttpCall,
    WrongAnswer,
    answer_of_events,
    error_code,
    json_object,
    protocol,
    retry_after_seconds,
    server_timing,
)
from loadtest.workload.requests import TextRequest

MAX_ANSWER_SECONDS = 60.0  # timeout of clients without a limit of their own
TOKENS_PER_WORD = 1.4  # estimate of source tokens, for protocols that do not report them

_STATUS_OUTCOMES = {429: Outcome.REJECTED, 456: Outcome.REJECTED, 503: Outcome.REJECTED, 504: Outcome.TIMED_OUT}
_CODE_OUTCOMES = {"deadline_exceeded": Outcome.TIMED_OUT, "queue_full": Outcome.REJECTED, "draining": Outcome.REJECTED}
# Time that the generator needs, beyond a round trip, to notice a closed connection.
_NOTICED_WITHIN_SECONDS = 0.002
# Events of one network packet are one event for a reader.
_SAME_INSTANT_SECONDS = 0.0002


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as bytes, ready to be sent."""

    request: TextRequest
    http: bytes
    source_tokens: int  # estimated


@dataclass(frozen=True, slots=True)
class Place:
    """Origin of a record."""

    stage: str
    worker: int
    user: int | None = None


@dataclass(slots=True)
class _Exchange:
    """State of one request."""

    sent: float  # the first time, if it is sent again
    is_resent: bool = False
    status: int = 0
    headers: Mapping[str, str] | None = None
    body: bytes = b""
    blocks: list[tuple[float, bytes]] | None = None  # of a stream, with the instants of reading


def prepared(request: TextRequest, address: Address) -> Prepared:
    """Return the request as bytes."""
    call = protocol(request.protocol).http_request(request)
    return Prepared(request, http_bytes(call, address), max(round(request.num_words * TOKENS_PER_WORD), 1))


def http_bytes(call: HttpCall, address: Address) -> bytes:
    """Return a complete HTTP/1.1 request."""
    lines = [f"{call.method} {address.path}{call.path} HTTP/1.1", f"Host: {address.host_header}"]
    lines += [f"{name}: {value}" for name, value in call.headers.items()]
    lines += [f"Content-Length: {len(call.body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + call.body


def perform(
    what: Prepared, scheduled: float | None, place: Place, connections: Connections, clock: Callable[[], float]
) -> tuple[Record, Answer | None]:
    """Send the request and wait for its end. The answer is None unless the outcome is `ANSWERED`.

    `scheduled` is the instant it was due; None means now. All times are read from `clock`.
    """
    request = what.request
    patience = request.hang_up_after_seconds
    begun = clock()
    exchange = _Exchange(sent=begun)
    outcome, reason, answer, finished = Outcome.ANSWERED, "", None, None
    limit = gevent.Timeout.start_new(MAX_ANSWER_SECONDS if patience is None else min(patience, MAX_ANSWER_SECONDS))
    try:
        _send(what.http, exchange, connections, clock)
        finished = clock()
    except gevent.Timeout as timeout:
        if timeout is not limit:
            raise
        outcome = Outcome.TIMED_OUT if patience is None else Outcome.HUNG_UP
        reason = f"no answer within {MAX_ANSWER_SECONDS:g} s" if patience is None else "the client disconnected"
    except CannotConnect as error:
        outcome, reason = Outcome.FAILED, str(error)
    except (OSError, HTTPParseError) as error:
        outcome, reason = Outcome.FAILED, f"no answer: {type(error).__name__}"
    except gevent.GreenletExit:
        outcome, reason = Outcome.UNFINISHED, "the load test ended"
    finally:
        limit.close()
    events: list[tuple[float, Event]] = []
    if finished is None:
        finished = None if outcome is Outcome.UNFINISHED else clock()
    else:
        events = _events(exchange)
        outcome, reason, answer = _outcome(exchange, events, request)
    texts_at = [instant for instant, event in events if event.name == TEXT_EVENT]
    counted = answer.source_tokens if answer else None
    record = Record(
        number=request.number,
        stage=place.stage,
        kind=request.kind,
        protocol=request.protocol,
        worker=place.worker,
        user=place.user,
        scheduled=exchange.sent if scheduled is None else scheduled,
        sent=exchange.sent,
        first_event=texts_at[0] if texts_at else None,
        finished=finished,
        outcome=outcome,
        status=exchange.status,
        reason=reason,
        source_tokens=what.source_tokens if counted is None else counted,
        source_tokens_estimated=counted is None,
        target_tokens=answer.target_tokens if answer else None,
        num_sentences=request.num_sentences,
        num_texts=len(request.texts),
        beam_size=request.beam_size,
        phases_ms=_phases(exchange.headers or {}, events),
        event_gaps=_gaps(texts_at),
        retry_after=retry_after_seconds((exchange.headers or {}).get("retry-after")),
        answer_sha256=answer_digest(answer.texts) if answer else None,
        is_resent=exchange.is_resent,
    )
    return record, answer


def _send(http: bytes, exchange: _Exchange, connections: Connections, clock: Callable[[], float]) -> None:
    """Send the bytes and read the answer. `exchange.sent` is the instant before the first byte, after connecting."""
    connection, was_used = connections.take()
    try:
        exchange.sent = clock()
        connection.sendall(http)
        response = read_head(connection)
    except (HTTPConnectionClosed, BrokenPipeError, ConnectionResetError):
        connection.close()
        # The server may have closed an idle connection while it was taken, without reading this request. Its message
        # was then in flight already. A later one is from a server that dropped the request.
        crossed_within = connections.round_trip_seconds + _NOTICED_WITHIN_SECONDS
        if not was_used or clock() - exchange.sent > crossed_within:
            raise
        exchange.is_resent = True
        connection = connections.connect()
        connection.sendall(http)
        response = read_head(connection)
    except BaseException:
        connection.close()
        raise
    try:
        _read(response, exchange, clock)
    finally:
        response.release()
    connections.give_back(connection, response)


def _read(response: HTTPSocketResponse, exchange: _Exchange, clock: Callable[[], float]) -> None:
    exchange.status = response.status_code
    exchange.headers = {name.lower(): value for name, value in response.items()}
    if exchange.headers.get("content-type", "").startswith(EVENTS_TYPE):
        exchange.blocks = []
        while block := response.readline(b"\n\n"):
            exchange.blocks.append((clock(), block))
    else:
        exchange.body = response.read()


def _events(exchange: _Exchange) -> list[tuple[float, Event]]:
    reader = EventReader()
    return [(instant, event) for instant, block in exchange.blocks or () for event in reader.feed(block)]


def _outcome(
    exchange: _Exchange, events: list[tuple[float, Event]], request: TextRequest
) -> tuple[Outcome, str, Answer | None]:
    status = exchange.status
    if status != 200:
        return _STATUS_OUTCOMES.get(status, Outcome.FAILED), f"HTTP {status}", None
    try:
        if exchange.blocks is None:
            answer = protocol(request.protocol).read_answer(exchange.body, request)
        elif events and events[-1][1].name == ERROR_EVENT:
            code = error_code(events[-1][1])
            return _CODE_OUTCOMES.get(code, Outcome.FAILED), f"stream ended in an error: {code}", None
        else:
            answer = answer_of_events([event for _, event in events], request)
    except WrongAnswer as wrong:
        return Outcome.FAILED, str(wrong), None
    return Outcome.ANSWERED, "", answer


def _phases(headers: Mapping[str, str], events: list[tuple[float, Event]]) -> dict[str, float]:
    """Return milliseconds by phase, from the header or from the last event of a stream."""
    if events and events[-1][1].name == DONE_EVENT:
        try:
            timings = json_object(events[-1][1].data).get("timings")
        except WrongAnswer:
            return {}
        named = timings.items() if isinstance(timings, dict) else ()
        return {str(name): float(value) for name, value in named if isinstance(value, int | float)}
    return server_timing(headers.get("server-timing", ""))


def _gaps(instants: list[float]) -> tuple[float, ...]:
    gaps = [later - earlier for earlier, later in pairwise(instants)]
    return tuple(gap for gap in gaps if gap > _SAME_INSTANT_SECONDS)
