"""A translation as chunks of a chat completion."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping

from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.http.protocols.openai.fields import OPENAI, event, finish_reason_of, usage_of
from server.http.requests.disconnect import unless_disconnected
from server.http.requests.translation_call import record_outcome
from server.http.responses.errors import error_response, note_expiry
from server.http.state import RequestRecord
from server.interface.errors import ClientGone, EngineFailed, KvasirError
from server.operations.metrics import Metrics
from server.translation.service import TranslationOutcome
from server.translation.text_stream import SENTENCES_AT_ONCE, TextStream

HEARTBEAT_SECONDS = 10.0  # proxies close connections after some thirty seconds without data


class CompletionStream(Response):
    """The response to a streaming request. It translates while it sends, and stops if the client disconnects.

    It has no comments and no event names, which some clients take for text; a chunk without text is the heartbeat. An
    error before the first chunk is an ordinary error response.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        translate: Callable[[TextStream], Coroutine[None, None, TranslationOutcome]],
        compose: Callable[[TranslationOutcome], str] | None,
        record: RequestRecord,
        metrics: Metrics,
        head: Mapping[str, object],
        *,
        has_usage: bool,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        """`head` has the fields of every chunk. With `compose`, the content is one chunk, made of the whole outcome."""
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["Content-Length"]
        self._translate = translate
        self._compose = compose
        self._record = record
        self._metrics = metrics
        self._head = head
        self._has_usage = has_usage
        self._heartbeat_seconds = heartbeat_seconds
        self._has_begun = False
        self._last_text: float | None = None  # seconds after the request came

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            outcome = await unless_disconnected(Request(scope, receive), self._stream(send))
            # After the watch for disconnects, which would count the end of the response as one.
            await self._end(send, outcome)
        except KvasirError as error:
            note_expiry(error, self._record)
            plain = error_response(error, OPENAI)
            if not self._has_begun:
                await plain(scope, receive, send)
                return
            self._record.late_status = plain.status_code
            if not isinstance(error, ClientGone):
                await self._fail(send, bytes(plain.body))
        except Exception:
            if self._has_begun:
                failure = EngineFailed("the server failed on this request; its log has the cause")
                await self._fail(send, bytes(error_response(failure, OPENAI).body))
            raise

    async def _stream(self, send: Send) -> TranslationOutcome:
        """Send all chunks with text."""
        feed = TextStream()
        translation = asyncio.create_task(self._translate(feed))
        translation.add_done_callback(lambda _: feed.wake())
        try:
            while not translation.done():
                if not await feed.wait(self._heartbeat_seconds):
                    await self._send_text(send, "")
                elif not translation.done():  # an error before the first text gets a status of its own
                    await self._send_new(send, feed)
            outcome = await translation
            record_outcome(self._record, outcome)
            if self._compose is None:
                await self._send_new(send, feed)
                while feed.has_news:
                    await self._send_new(send, feed)
            else:
                await self._send_text(send, self._compose(outcome))
            return outcome
        finally:
            translation.cancel()
            await asyncio.gather(translation, return_exceptions=True)

    async def _send_new(self, send: Send, feed: TextStream) -> None:
        text = "".join(delta.text for delta in feed.take(SENTENCES_AT_ONCE))
        if text and self._compose is None:
            await self._send_text(send, text)

    async def _send_text(self, send: Send, text: str) -> None:
        delta = {"content": text} if self._has_begun else {"role": "assistant", "content": text}
        await self._send(send, event(self._chunk(delta, None)))
        if not text:
            return
        now = self._record.elapsed_seconds()
        if self._last_text is None:
            self._metrics.stream_first_seconds.observe(now)
        else:
            self._metrics.stream_gap_seconds.observe(now - self._last_text)
        self._last_text = now

    async def _end(self, send: Send, outcome: TranslationOutcome) -> None:
        translations = list(outcome.result.translations)
        events = event(self._chunk({}, finish_reason_of(translations)))
        if self._has_usage:
            events += event({**self._head, "choices": [], "usage": usage_of(translations).model_dump()})
        await self._send(send, events + b"data: [DONE]\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _fail(self, send: Send, body: bytes) -> None:
        """End the stream with an error; official clients raise it."""
        await self._send(send, b"data: " + body + b"\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _chunk(self, delta: dict[str, str], finish_reason: str | None) -> dict[str, object]:
        return {**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    async def _send(self, send: Send, data: bytes) -> None:
        """Send bytes of the body, and the headers before the first. Waits for a slow reader."""
        if not self._has_begun:
            self._has_begun = self._record.is_streamed = True
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": data, "more_body": True})
