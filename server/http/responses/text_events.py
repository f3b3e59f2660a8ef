"""A translation as server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from typing import Generic, TypeVar

from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.http.requests.disconnect import unless_disconnected
from server.http.requests.translation_call import record_outcome
from server.http.responses.errors import NATIVE, ErrorFormat, error_response, note_expiry
from server.http.state import RequestRecord
from server.interface.errors import ClientGone, EngineFailed, KvasirError
from server.operations.metrics import Metrics
from server.translation.service import TranslationOutcome
from server.translation.text_stream import SENTENCES_AT_ONCE, TextDelta, TextStream
from server.translation.whole_texts import GenerationOutcome

HEARTBEAT_SECONDS = 10.0  # proxies close connections after some thirty seconds without data
# Caches must not store the response, and nginx must not buffer events.
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

OutcomeT = TypeVar("OutcomeT", bound=TranslationOutcome | GenerationOutcome)


class TextEvents(Response, ABC, Generic[OutcomeT]):
    """The response to a streaming request. It translates while it sends, and stops if the client disconnects.

    An error before the first event is an ordinary error response. The first event is the first final text, or a
    heartbeat after `heartbeat_seconds`. Subclasses write the events.
    """

    media_type = "text/event-stream"
    error_format: ErrorFormat = NATIVE

    def __init__(
        self,
        translate: Callable[[TextStream], Coroutine[None, None, OutcomeT]],
        record: RequestRecord,
        metrics: Metrics,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__(headers=STREAM_HEADERS)
        del self.headers["Content-Length"]
        self._translate, self._record, self._metrics = translate, record, metrics
        self._heartbeat_seconds = heartbeat_seconds
        self.has_begun = False
        self._last_text: float | None = None  # seconds after the request came

    @abstractmethod
    def heartbeat(self) -> bytes:
        """Return an event without text."""

    @abstractmethod
    def events(self, deltas: Sequence[TextDelta]) -> bytes:
        """Return events with text, or nothing."""

    @abstractmethod
    async def ending(self, outcome: OutcomeT) -> bytes:
        """Return the last events."""

    @abstractmethod
    def failure(self, body: bytes) -> bytes:
        """Return the last event of a stream that failed, from the body of an error response."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            # The end is sent after the watch for disconnects, which would count the end of the response as one.
            await self._end(send, await unless_disconnected(Request(scope, receive), self._stream(send)))
        except KvasirError as error:
            note_expiry(error, self._record)
            plain = error_response(error, self.error_format)
            if not self.has_begun:
                await plain(scope, receive, send)
                return
            self._record.late_status = plain.status_code
            if not isinstance(error, ClientGone):
                await self._end(send, self.failure(bytes(plain.body)))
        except Exception:
            if self.has_begun:
                failure = EngineFailed("the server failed on this request; its log has the cause")
                await self._end(send, self.failure(bytes(error_response(failure, self.error_format).body)))
            raise

    async def _stream(self, send: Send) -> bytes:
        """Send all events with text. Return the last events."""
        feed = TextStream()
        translation = asyncio.create_task(self._translate(feed))
        translation.add_done_callback(lambda _: feed.wake())
        try:
            while not translation.done():
                if not await feed.wait(self._heartbeat_seconds):
                    await self._send(send, self.heartbeat())
                elif not translation.done():  # an error before the first text gets a status of its own
                    await self._send_text(send, self.events(feed.take(SENTENCES_AT_ONCE)))
            outcome = await translation
            record_outcome(self._record, outcome)
            await self._send_text(send, self.events(feed.take(SENTENCES_AT_ONCE)))
            while feed.has_news:
                await self._send_text(send, self.events(feed.take(SENTENCES_AT_ONCE)))
            return await self.ending(outcome)
        finally:
            translation.cancel()
            await asyncio.gather(translation, return_exceptions=True)

    async def _send_text(self, send: Send, events: bytes) -> None:
        if events:
            await self._send(send, events)
            self.note_text()

    def note_text(self) -> None:
        """Record the time of an event with text."""
        now = self._record.elapsed_seconds()
        if self._last_text is None:
            self._metrics.stream_first_seconds.observe(now)
        else:
            self._metrics.stream_gap_seconds.observe(now - self._last_text)
        self._last_text = now

    async def _end(self, send: Send, events: bytes) -> None:
        await self._send(send, events)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, events: bytes) -> None:
        """Send a part of the body, and the headers before the first. Waits for a slow reader."""
        if not self.has_begun:
            self.has_begun = self._record.is_streamed = True
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": events, "more_body": True})
