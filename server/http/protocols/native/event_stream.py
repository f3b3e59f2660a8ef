"""A translation as server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html.

`text` events carry parts of the texts, each with the index of its text. The last event is `done`, with the plain
answer and timings, or `error`, with the body of an error response.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Generic, TypeVar

from fastapi import Request
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.http.requests.disconnect import unless_disconnected
from server.http.requests.translation_call import Outcome, record_outcome
from server.http.responses.errors import error_response, note_expiry
from server.http.responses.large_json import json_off_loop
from server.http.state import RequestRecord
from server.interface.errors import ClientGone, EngineFailed, KvasirError
from server.operations.metrics import Metrics
from server.translation.text_stream import SENTENCES_AT_ONCE, TextDelta, TextStream

HEARTBEAT_SECONDS = 10.0  # proxies close connections after some thirty seconds without data

MEDIA_TYPE = EventSourceResponse.media_type
# Caches must not store the response, and nginx must not buffer events.
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_EXAMPLE = """event: text
data: {"index":0,"text":"Guten Morgen. Wie"}

event: text
data: {"index":0,"text":" geht es Ihnen heute?"}

event: done
data: {"translations":[{"text":"Guten Morgen. Wie geht es Ihnen heute?", ...}],"model":"en-de","timings":{...}}

"""

# For the OpenAPI description of an operation, beside the content of the plain answer.
EVENTS_CONTENT: dict[str, object] = {
    MEDIA_TYPE: {
        "schema": {
            "type": "string",
            "description": "With `stream`: `text` events with the index of a text and its next characters. The last "
            "event is `done`, with the plain answer and `timings` in milliseconds, or `error`, with the body of an "
            "error response.",
        },
        "example": _EXAMPLE,
    }
}


OutcomeT = TypeVar("OutcomeT", bound=Outcome)


class EventStream(Response, Generic[OutcomeT]):
    """The response to a streaming request. It translates while it sends, and stops if the client disconnects.

    An error before the first event is an ordinary error response. The first event is the first final text, or a
    heartbeat after `heartbeat_seconds`.
    """

    media_type = MEDIA_TYPE

    def __init__(
        self,
        translate: Callable[[TextStream], Coroutine[None, None, OutcomeT]],
        answer: Callable[[OutcomeT], BaseModel],
        record: RequestRecord,
        metrics: Metrics,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["Content-Length"]
        self._translate = translate
        self._answer = answer
        self._record = record
        self._metrics = metrics
        self._heartbeat_seconds = heartbeat_seconds
        self._has_begun = False
        self._last_text: float | None = None  # seconds after the request came

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            answer = await unless_disconnected(Request(scope, receive), self._stream(send))
            # After the watch for disconnects, which would count the end of the response as one.
            await self._end(send, "done", answer)
        except KvasirError as error:
            note_expiry(error, self._record)
            plain = error_response(error)
            if not self._has_begun:
                await plain(scope, receive, send)
                return
            self._record.late_status = plain.status_code
            if not isinstance(error, ClientGone):
                await self._end(send, "error", bytes(plain.body))
        except Exception:
            if self._has_begun:
                failure = EngineFailed("the server failed on this request; its log has the cause")
                await self._end(send, "error", bytes(error_response(failure).body))
            raise

    async def _stream(self, send: Send) -> bytes:
        """Send all text events. Return the data of the last event, as JSON."""
        feed = TextStream()
        translation = asyncio.create_task(self._translate(feed))
        translation.add_done_callback(lambda _: feed.wake())
        try:
            while not translation.done():
                if not await feed.wait(self._heartbeat_seconds):
                    await self._send(send, format_sse_event(comment="still at work"))
                elif not translation.done():  # an error before the first text gets a status of its own
                    await self._send_pieces(send, feed.take(SENTENCES_AT_ONCE))
            done = await translation
            record_outcome(self._record, done)
            await self._send_pieces(send, feed.take(SENTENCES_AT_ONCE))
            while feed.has_news:
                await self._send_pieces(send, feed.take(SENTENCES_AT_ONCE))
            content = await json_off_loop(partial(self._answer, done))
            timings = _json({"timings": self._record.timings()}).encode()
            return b"".join((content[:-1], b"" if content == b"{}" else b",", timings[1:]))
        finally:
            translation.cancel()
            await asyncio.gather(translation, return_exceptions=True)

    async def _send_pieces(self, send: Send, pieces: Sequence[TextDelta]) -> None:
        if not pieces:
            return
        events = (_json({"index": piece.index, "text": piece.text}) for piece in pieces)
        await self._send(send, b"".join(format_sse_event(event="text", data_str=event) for event in events))
        now = self._record.elapsed_seconds()
        if self._last_text is None:
            self._metrics.stream_first_seconds.observe(now)
        else:
            self._metrics.stream_gap_seconds.observe(now - self._last_text)
        self._last_text = now

    async def _end(self, send: Send, event: str, data: bytes) -> None:
        # JSON has no line breaks to be escaped; to look for them in 20 MB would hold the event loop for 0.15 s.
        await self._send(send, b"event: %b\ndata: %b\n\n" % (event.encode(), data))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, chunk: bytes) -> None:
        """Send bytes of the body, and the headers before the first. Waits for a slow reader."""
        if not self._has_begun:
            self._has_begun = self._record.is_streamed = True
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": chunk, "more_body": True})


def _json(content: dict[str, object]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
