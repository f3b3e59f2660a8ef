"""Live translation: a WebSocket at `/v1/live`; for simple clients requests, answered by server-sent events.

Text that a client sends as it grows is translated at once, and what is committed never changes: docs/live.md.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeVar

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import StreamingResponse
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from server.http.protocols.protocol import Protocol
from server.http.responses.errors import NATIVE, describe_problems, error_response, error_responses
from server.http.responses.text_events import HEARTBEAT_SECONDS, STREAM_HEADERS
from server.http.state import RequestRecord, ServerState
from server.interface.decoding_options import MAX_BEAM_SIZE
from server.interface.errors import InvalidRequest, KvasirError, UnsupportedPair
from server.live.policies import DEFAULT_POLICY, PolicyName
from server.live.session import DEFAULT_FRAME, Event, Input, LiveOptions, LiveSession
from server.translation.pipeline import Pipeline

_MEDIA_TYPE = EventSourceResponse.media_type
_EVENTS = "Events with `committed` pieces and a `draft`, an `error`, or the `end` of the session."
_CLOSE_CODES = {"error": 1011, "draining": 1012}  # RFC 6455: an error; the service restarts

router = APIRouter(prefix="/v1", tags=["live"])

ModelT = TypeVar("ModelT", bound=BaseModel)


class LiveQuery(BaseModel):
    """Languages of a session, and when text is committed."""

    source: str | None = Field(
        None, max_length=64, description="language of the text; optional if only one is possible"
    )
    target: str | None = Field(
        None, max_length=64, description="language to translate into; optional if only one is possible"
    )
    policy: PolicyName = Field(DEFAULT_POLICY, description="what decides that text is committed")
    frame: int = Field(
        DEFAULT_FRAME,
        ge=0,
        le=50,
        description="words that are awaited: text is committed that rests on words before the last `frame` ones",
    )
    beam_size: int = Field(1, ge=1, le=MAX_BEAM_SIZE, description="number of hypotheses that the search keeps")


class LiveInput(BaseModel):
    """Text as it grows. Positions count characters (Unicode code points) of all that was sent."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"append": "Good morning. How "}]})

    append: str = Field("", description="text to add to the end")
    replace_from: int | None = Field(
        None, ge=0, description="position from which on `text` replaces what was sent; what is committed stays"
    )
    text: str = Field("", description="the replacement")
    final: bool = Field(False, description="no word follows in the last sentence: commit everything")
    end: bool = Field(False, description="commit everything, then end the session")


class LiveAnswer(BaseModel):
    """An open session."""

    id: str = Field(description="keep it secret: it is all that reading from and writing to the session needs")
    source: str
    target: str
    model: str


@router.post("/live", status_code=201, response_model=LiveAnswer, responses=error_responses(404, 422, 429, 500, 503))
async def open_session(query: Annotated[LiveQuery, Query()], request: Request, response: Response) -> LiveAnswer:
    """Open a session for text that grows. It ends after some minutes without input.

    Send text to `/v1/live/{id}`, and read the translation there as server-sent events. A WebSocket at `/v1/live`, with
    the same parameters, does both.
    """
    session = _opened(request.app.state.server, request.scope["state"]["record"], query)
    response.headers["Location"] = f"live/{session.id}"
    return _answer(session)


SessionId = Annotated[str, Path(max_length=64, description="id of the session")]


@router.post("/live/{session_id}", status_code=204, responses=error_responses(404, 422, 429, 500, 503))
async def send_text(session_id: SessionId, body: LiveInput, request: Request) -> None:
    """Send text, a revision of text, or the end of a sentence."""
    _take(request.app.state.server.live.find(session_id), body)


@router.get(
    "/live/{session_id}",
    response_class=StreamingResponse,
    responses={
        200: {"description": _EVENTS, "content": {_MEDIA_TYPE: {"schema": {"type": "string"}}}},
        **error_responses(404, 500, 503),
    },
)
async def read_events(
    session_id: SessionId,
    request: Request,
    last_event_id: Annotated[int, Header(ge=0, description="read on behind this event")] = 0,
) -> Response:
    """Read the translation of a session as server-sent events. Any number of readers can."""
    session = request.app.state.server.live.find(session_id)
    request.scope["state"]["record"].is_streamed = True
    return StreamingResponse(_stream(session, last_event_id), headers=STREAM_HEADERS, media_type=_MEDIA_TYPE)


@router.delete("/live/{session_id}", status_code=204, responses=error_responses(404, 500, 503))
async def end_session(session_id: SessionId, request: Request) -> None:
    """Commit everything, and end a session."""
    request.app.state.server.live.find(session_id).end("final")


async def _stream(session: LiveSession, after: int) -> AsyncIterator[bytes]:
    try:
        async for number, event in session.events(after, HEARTBEAT_SECONDS):
            if event:
                yield format_sse_event(data_str=_json(event), id=str(number))
            else:
                yield format_sse_event(comment="still at work")
    except KvasirError as error:
        yield format_sse_event(data_str=_json(_error_event(error)))


async def converse(socket: WebSocket) -> None:
    """Serve one session over a WebSocket."""
    server: ServerState = socket.app.state.server
    record: RequestRecord = socket.scope["state"]["record"]
    try:
        session = _opened(server, record, _valid(LiveQuery, dict(socket.query_params)))
    except KvasirError as error:
        await error_response(error)(socket.scope, socket.receive, socket.send)
        return
    record.model = session.model
    try:
        await socket.accept()
        await socket.send_text(_json({"session": _answer(session).model_dump()}))
        sending = asyncio.create_task(_send_events(socket, session))
        receiving = asyncio.create_task(_receive(socket, session))
        try:
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            receiving.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)
    finally:
        await server.live.drop(session)  # its client has left, if it has not ended


async def _send_events(socket: WebSocket, session: LiveSession) -> None:
    try:
        async for _, event in session.events():
            await socket.send_text(_json(event))
    except KvasirError as error:
        await socket.send_text(_json(_error_event(error)))
        await socket.close(1008)
    else:
        await socket.close(_CLOSE_CODES.get(session.end_reason or "", 1000))


async def _receive(socket: WebSocket, session: LiveSession) -> None:
    """Take messages until the client leaves. A message that is not valid is answered with an error, and not taken."""
    while (message := await socket.receive())["type"] == "websocket.receive":
        try:
            take_message(session, message.get("text"))
        except KvasirError as error:
            await socket.send_text(_json(_error_event(error)))


def _opened(server: ServerState, record: RequestRecord, query: LiveQuery) -> LiveSession:
    """Start a session. Raises `QueueFull`, `Draining`, and `InvalidRequest` for languages without one model."""
    _, router = server.accept()
    server.live.check(record.client)
    route = router.find(query.source, query.target)
    if route.pivot is not None:
        raise UnsupportedPair(f"live translation needs one model; {route.name} translates through {route.pivot}")
    source, target = route.source, route.target

    @contextmanager
    def find() -> Iterator[Pipeline]:
        router = server.router
        assert router is not None, "models were loaded when the session was opened"
        with router.in_use():
            yield router.find(source, target).steps[0].pipeline

    def charge(num_characters: int) -> None:
        if server.key_gate is not None and record.key is not None:
            server.key_gate.charge(record.key, num_characters)
        record.num_characters += num_characters

    options = LiveOptions(source, target, query.policy, query.frame, query.beam_size)
    session = LiveSession(options, find, server.live.clock, charge, server.metrics.live_seconds.observe)
    record.num_texts = 1
    return server.live.start(session, record.client)


def _answer(session: LiveSession) -> LiveAnswer:
    options = session.options
    return LiveAnswer(id=session.id, source=options.source, target=options.target, model=session.model)


def take_message(session: LiveSession, text: str | None) -> None:
    """Take a message of a WebSocket. Raises `KvasirError`, and takes nothing then."""
    try:
        sent = json.loads(text or "")
    except (ValueError, RecursionError):
        sent = None
    if not isinstance(sent, dict):
        raise InvalidRequest("a message must be a JSON object, sent as text")
    _take(session, _valid(LiveInput, sent))


def _take(session: LiveSession, sent: LiveInput) -> None:
    if sent.replace_from is not None and sent.append:
        raise InvalidRequest("`append` cannot be combined with `replace_from`; send the replacement as `text`")
    if sent.replace_from is None and sent.text:
        raise InvalidRequest("`text` needs `replace_from`; send text to add as `append`")
    session.send(Input(sent.append or sent.text, sent.replace_from, sent.final))
    if sent.end:
        session.end("final")


def _valid(model: type[ModelT], values: dict[str, str]) -> ModelT:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidRequest(describe_problems(error.errors())) from None


def _error_event(error: KvasirError) -> Event:
    return {"error": {"code": error.code, "message": str(error)}}


def _json(event: Event) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


sockets = APIRouter()
# Not a route of FastAPI, whose dependencies for the documentation take requests only.
sockets.routes.append(WebSocketRoute("/v1/live", converse))

LIVE_PROTOCOL = Protocol(
    name="live",
    routers=(router, sockets),
    error_format=NATIVE,
    paths=("/v1/live", "/v1/live/"),
    engine_free_paths=("/v1/live/",),  # a session that was accepted waits for the engine
    key_queries=("api_key",),  # a browser sends no headers with a WebSocket
)
