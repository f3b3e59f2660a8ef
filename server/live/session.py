"""Sessions of live translation: text in as it grows, events out, one decoding at a time."""

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from server.interface.engine_client import EngineClient
from server.interface.errors import EngineFailed, InvalidRequest, KvasirError, NotFound, QueueFull, TryLater
from server.live.decoding import Decoded, LiveModel, LiveSentence
from server.live.growing_text import GrowingText, Update
from server.live.policies import DEFAULT_POLICY, policy_of
from server.translation.execution import NO_DEADLINE
from server.translation.pipeline import Pipeline
from server.translation.submission import Submission

_log = logging.getLogger("kvasir")

_MAX_OPEN_CHARACTERS = 20_000  # sent and not committed: more than anyone says while a server is busy
_KEPT_EVENTS = 500  # for readers that are slow or come late: minutes of speech
_RETRY_SECONDS = 0.25  # after an engine has failed, doubled each time
_PATIENCE_SECONDS = 30.0

DEFAULT_FRAME: Final = 3

EndReason = Literal["final", "idle", "draining", "error"]
Event = dict[str, object]
"""What readers get, as JSON: `committed` pieces with the `draft` behind them, an `error`, or the reason of the `end`.

`read` characters of the source are translated so far; what comes of the first `settled` is complete.
"""

FindPipeline = Callable[[], AbstractContextManager[Pipeline]]
"""Returns the pipeline that serves the session now, and keeps its model loaded meanwhile."""


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Languages of a session, and how it decides what is committed."""

    source: str
    target: str
    policy: str = DEFAULT_POLICY
    frame: int = DEFAULT_FRAME
    beam_size: int = 1


@dataclass(frozen=True, slots=True)
class Input:
    """What a client sends: text to add, or to put in place of all from a character on; or that the text is final."""

    text: str = ""
    replace_from: int | None = None
    final: bool = False


class LiveSession:
    """One growing text and its translation. `run` decodes; all methods are for the event loop's thread.

    Input that arrives while a sentence is decoded waits, and the newest state of the text is decoded next. A full queue
    or an engine that died delay a session: it is text, and is decoded again.
    """

    def __init__(
        self,
        options: LiveOptions,
        find: FindPipeline,
        clock: Callable[[], float],
        charge: Callable[[int], None] = lambda _: None,
        observe: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Charge each text before it is taken, and observe the seconds until it was translated.

        Raises `InvalidRequest` for options that the server or the model does not support.
        """
        self.id: Final = secrets.token_urlsafe(18)
        self.options: Final = options
        self._text = GrowingText(options.source, options.target, policy_of(options.policy, options.frame))
        self._find = find
        with find() as pipeline:
            self._model = LiveModel(pipeline, options.source, options.target, options.beam_size)
        self._clock = clock
        self._charge = charge
        self._observe = observe
        self._changed = asyncio.Event()
        self._waiting_since: float | None = None
        self._is_decoding = False
        self._end_reason: EndReason | None = None
        self._decoded: dict[LiveSentence, Decoded | None] = {}  # in the last round
        self._num_events = 0
        self._events: deque[tuple[int, Event]] = deque(maxlen=_KEPT_EVENTS)
        self._latest: Event = {}
        self._news = asyncio.Condition()
        self.last_input = clock()
        self.has_ended = False

    def send(self, sent: Input) -> None:
        """Take input. Raises `InvalidRequest`, or the errors of `charge`, and takes nothing then."""
        if self._end_reason is not None:
            raise NotFound("the session has ended; open another one")
        if len(self._text.text) + len(sent.text) > _MAX_OPEN_CHARACTERS:
            raise InvalidRequest(
                f"at most {_MAX_OPEN_CHARACTERS} characters may wait for their translation; send them more slowly"
            )
        if sent.replace_from is not None:
            self._text.check_start(sent.replace_from)
        self._charge(len(sent.text))
        if sent.replace_from is not None:
            self._text.replace_from(sent.replace_from, sent.text)
        else:
            self._text.append(sent.text)
        if sent.final:
            self._text.finish()
        self.last_input = self._clock()
        if self._waiting_since is None:
            self._waiting_since = self.last_input
        self._changed.set()

    def end(self, reason: EndReason) -> None:
        """Commit everything, then end."""
        if self._end_reason is None:
            self._text.finish()
            self._end_reason = reason
            self._changed.set()

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._model.pipeline.bundle.config.name

    @property
    def end_reason(self) -> EndReason | None:
        """The reason why the session has ended, or ends; None while it goes on."""
        return self._end_reason

    @property
    def is_idle(self) -> bool:
        """Whether everything that was sent has been decoded."""
        return self._waiting_since is None and not self._is_decoding

    async def run(self) -> None:
        """Decode until the session ends."""
        try:
            while self._end_reason is None or self._changed.is_set():
                await self._changed.wait()
                self._changed.clear()
                since, self._waiting_since = self._waiting_since, None
                self._is_decoding = True
                await self._publish_update(await self._translated())
                self._is_decoding = False
                if since is not None:
                    self._observe(self._clock() - since)
        except KvasirError as error:
            self._end_reason = "error"
            await self._publish({"error": {"code": error.code, "message": str(error)}})
        except Exception:  # noqa: BLE001 - logged and reported; the other sessions go on
            self._end_reason = "error"
            _log.exception("live session failed")
            message = "the server failed on this session; its log has the cause"
            await self._publish({"error": {"code": EngineFailed.code, "message": message}})
        finally:
            self.has_ended = True
            await self._publish({"end": self._end_reason or "error"})

    async def _translated(self) -> Update:
        """Decode the present text once, and commit what may be."""
        waited, delay = 0.0, _RETRY_SECONDS
        while True:
            try:
                with self._find() as pipeline:
                    if pipeline is not self._model.pipeline:
                        options = self.options
                        self._model = LiveModel(pipeline, options.source, options.target, options.beam_size)
                        self._text.continue_with(self._model)
                        self._decoded.clear()
                    then = self._text.text
                    sentences = self._text.sentences(self._model)
                    await self._decode(pipeline.engine, sentences)
                return self._text.take([(sentence, self._decoded[sentence]) for sentence in sentences], then)
            except (TryLater, EngineFailed) as error:
                if waited >= _PATIENCE_SECONDS:
                    raise
                seconds = max(delay, error.retry_after_seconds if isinstance(error, QueueFull) else 0.0)
                waited, delay = waited + seconds, 2 * delay
                await asyncio.sleep(seconds)

    async def _decode(self, engine: EngineClient, sentences: list[LiveSentence]) -> None:
        """Decode the sentences that were not decoded as they are in the last round."""
        known: dict[LiveSentence, Decoded | None] = {}
        for sentence in sentences:
            as_open = replace(sentence, closed=False)
            if not sentence.reading.has_words:
                known[sentence] = None
            elif (decoded := self._decoded.get(sentence) or self._decoded.get(as_open)) is not None:
                known[sentence] = decoded
        requests = {sentence: self._model.request(sentence) for sentence in sentences if sentence not in known}
        submission = Submission(engine, NO_DEADLINE, NO_DEADLINE.clock(), accepted_earlier=True)
        completions = await submission.submit(list(requests.values()))
        for sentence, request in requests.items():
            known[sentence] = self._model.decoded(sentence.reading, completions[request.id])
        self._decoded = known

    async def _publish_update(self, update: Update) -> None:
        pieces = [{"text": each.text, "start": each.start, "end": each.end} for each in update.pieces]
        self._latest = {"draft": update.draft, "read": update.read, "settled": self._text.settled}
        await self._publish({"committed": pieces})

    async def _publish(self, event: Event) -> None:
        async with self._news:
            self._num_events += 1
            self._events.append((self._num_events, event))
            self._news.notify_all()

    async def events(self, after: int = 0, heartbeat_seconds: float | None = None) -> AsyncIterator[tuple[int, Event]]:
        """Yield events and their numbers, those after `after` that are kept first, until the end.

        Commitments that a reader has not taken are joined, with the newest draft behind them. An empty event is a
        heartbeat. Raises `NotFound` for a reader that is so late that commitments between are no longer kept.
        """
        position = after
        while True:
            async with self._news:
                if self._num_events <= position:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(heartbeat_seconds):
                            await self._news.wait()
                unread = [(number, event) for number, event in self._events if number > position]
            if position and unread and unread[0][0] > position + 1:
                raise NotFound("commitments were not read in time and are no longer kept; open another session")
            if not unread:
                yield position, {}
                continue
            committed = [(number, event) for number, event in unread if "committed" in event]
            if committed:
                position = committed[-1][0]
                pieces = [piece for _, event in committed for piece in _pieces(event)]
                yield position, {"committed": pieces, **self._latest}
            for position, event in unread[len(committed) :]:  # nothing is committed after an error or the end
                yield position, event
                if "end" in event:
                    return


def committed_text(event: Event) -> str:
    """Return the text that an event commits."""
    return "".join(str(piece["text"]) for piece in _pieces(event))


def _pieces(event: Event) -> list[dict[str, object]]:
    pieces = event.get("committed")
    return pieces if isinstance(pieces, list) else []


@dataclass(slots=True)
class LiveSessions:
    """The sessions of a server: bounded in number, of each client as well, and ended when nothing comes any more."""

    max_sessions: int
    idle_seconds: float
    clock: Callable[[], float]
    _running: dict[str, tuple[LiveSession, str, asyncio.Task[None]]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._running)

    def check(self, client: str) -> None:
        """Raise `QueueFull` if this client may not open another session now: it has half of them at most."""
        num_own = sum(owner == client for _, owner, _ in self._running.values())
        most = max(self.max_sessions // 2, 1)
        if len(self._running) >= self.max_sessions or num_own >= most:
            message = f"the server has at most {self.max_sessions} live sessions, {most} for each client; retry later"
            raise QueueFull(message, self.idle_seconds)

    def start(self, session: LiveSession, client: str) -> LiveSession:
        """Run a session until it ends. Its decoding counts as that of the present client."""
        self.check(client)
        task = asyncio.create_task(session.run())
        self._running[session.id] = (session, client, task)
        task.add_done_callback(lambda _: self._running.pop(session.id, None))
        return session

    def find(self, session_id: str) -> LiveSession:
        """Return a session. Raises `NotFound` for one that has ended."""
        if session_id not in self._running:
            raise NotFound("no live session has this id, or it has ended; open another one")
        return self._running[session_id][0]

    async def drop(self, session: LiveSession) -> None:
        """End a session at once whose client has left, and free its rows."""
        if session.id in self._running:
            task = self._running[session.id][2]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def end_all(self, reason: EndReason) -> None:
        """Commit what every session has, and end it."""
        for session, _, _ in list(self._running.values()):
            session.end(reason)

    def end_idle(self) -> None:
        """End the sessions that received nothing for too long."""
        for session, _, _ in list(self._running.values()):
            if self.clock() - session.last_input > self.idle_seconds:
                session.end("idle")

    async def watch(self) -> None:
        """End idle sessions, until cancelled."""
        while True:
            await asyncio.sleep(min(self.idle_seconds / 10, 5.0))
            self.end_idle()
