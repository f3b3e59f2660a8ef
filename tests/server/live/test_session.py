import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence

import pytest

from server.interface.errors import EngineFailed, InvalidRequest, NotFound, QueueFull, QuotaExceeded
from server.interface.request import Completion, Request
from server.live.session import Event, Input, LiveSession, LiveSessions
from server.translation.pipeline import Pipeline
from tests.server.live.conftest import Told

SPOKEN = (
    "Good morning. My sister has bought a new red car and she wants to show it to me.",
    "Where is the station? I would like a cup of tea, please.",
    "It is a beautiful day. Thank you for your help.",
)
Trace = Sequence[tuple[float, Input]]  # when something is sent, in seconds


def _trace(text: str, seed: int) -> Trace:
    """Return the arrivals of a text word by word, some words at the same time."""
    draw, now = random.Random(seed), 0.0
    arrivals = []
    for word in text.split():
        now += draw.choice((0.0, 0.3, 0.5))
        arrivals.append((now, Input(f"{word} ")))
    return [*arrivals, (now + 1, Input(final=True))]


async def _replayed(told: Told, traces: Sequence[Trace]) -> list[list[Event]]:
    """Send traces at their times to sessions at once; return the events of each."""
    sessions = [told.session() for _ in traces]
    read: list[list[Event]] = [[] for _ in traces]

    async def follow(session: LiveSession, events: list[Event]) -> None:
        events += [event async for _, event in session.events()]

    running = [asyncio.create_task(session.run()) for session in sessions]
    reading = [asyncio.create_task(follow(*each)) for each in zip(sessions, read, strict=True)]
    moments = sorted({at for trace in traces for at, _ in trace})
    for moment in moments:
        told.clock.now = moment
        for session, trace in zip(sessions, traces, strict=True):
            for at, sent in trace:
                if at == moment:
                    session.send(sent)
        await told.until_idle(sessions)
    for session in sessions:
        session.end("final")
    await told.until_idle(sessions)
    await asyncio.gather(*running, *reading)
    return read


def _pieces(events: Sequence[Event]) -> list[object]:
    return [piece for event in events if isinstance(pieces := event.get("committed"), list) for piece in pieces]


def test_a_session_commits_the_same_alone_and_in_company(told: Told) -> None:
    traces = [_trace(text, seed) for seed, text in enumerate(SPOKEN)]
    alone = asyncio.run(_replayed(told, traces[:1]))[0]
    company = asyncio.run(_replayed(told, [*traces, *traces]))
    assert len(_pieces(alone)) > 5
    assert [each for each in company[0] if each.get("committed")] == [each for each in alone if each.get("committed")]
    assert _pieces(company[0]) == _pieces(company[3])


def _with_session(
    told: Told, test: Callable[[LiveSession], Coroutine[None, None, None]], session: LiveSession | None = None
) -> None:
    async def run() -> None:
        opened = session or told.session()
        running = asyncio.create_task(opened.run())
        await test(opened)
        opened.end("final")
        await told.until_idle([opened])
        await running

    asyncio.run(run())


class _Watched:
    """An engine that counts calls, and fails some times before it works."""

    def __init__(self, told: Told, errors: Sequence[Exception] = ()) -> None:
        self._told = told
        self.errors = list(errors)
        self.num_calls = 0
        self.bundle = told.engine.bundle
        told.pipeline = Pipeline(self, told.pipeline.limits)  # type: ignore[arg-type]

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Raise the next error, or decode."""
        self.num_calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return await self._told.engine.generate(requests)


def test_the_newest_text_replaces_updates_that_wait(told: Told) -> None:
    watched = _Watched(told)

    async def test(session: LiveSession) -> None:
        for word in ["Where", "is", "the", "station?"]:
            session.send(Input(f"{word} "))
        await told.until_idle([session])
        assert watched.num_calls == 1

    _with_session(told, test)


def test_a_reader_gets_unread_commitments_joined_with_the_newest_draft(told: Told) -> None:
    async def test(session: LiveSession) -> None:
        for text in ("Good morning. ", "Thank you. ", "Where is the"):
            session.send(Input(text))
            await told.until_idle([session])
        number, event = await anext(aiter(session.events()))
        assert number == 3
        assert event["committed"] == [
            {"text": "Guten Morgen.", "start": 0, "end": 13},
            {"text": " Vielen Dank.", "start": 14, "end": 24},
        ]
        assert (event["settled"], event["read"]) == (25, 37)
        assert event["draft"]
        assert await anext(aiter(session.events(after=3, heartbeat_seconds=0.0))) == (3, {})

    _with_session(told, test)


def test_a_reader_that_is_too_late_is_told(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(session: LiveSession) -> None:
        for _ in range(4):
            session.send(Input("Good morning. "))
            await told.until_idle([session])
        with pytest.raises(NotFound, match="not read in time"):
            await anext(aiter(session.events(after=1)))
        first = await anext(aiter(session.events()))
        assert first[0] == 4  # who comes late gets what is kept

    monkeypatch.setattr("server.live.session._KEPT_EVENTS", 2)
    _with_session(told, test)


def test_input_that_is_refused_changes_nothing(told: Told) -> None:
    def charge(num_characters: int) -> None:
        if num_characters > 20:
            raise QuotaExceeded("no characters are left today", 60.0)

    async def test(session: LiveSession) -> None:
        session.send(Input("Good morning. "))
        with pytest.raises(QuotaExceeded):
            session.send(Input("Where is the station, please? "))
        with pytest.raises(InvalidRequest, match="`replace_from` must be from 0 to 14"):
            session.send(Input("x", replace_from=15))
        with pytest.raises(InvalidRequest, match="20000 characters"):
            session.send(Input("x" * 30_000))
        await told.until_idle([session])
        _, event = await anext(aiter(session.events()))
        assert event["read"] == 14

    _with_session(told, test, told.session(charge))


@pytest.mark.parametrize("error", [EngineFailed("its process died"), QueueFull("the queue is full", 0.0)])
def test_a_session_survives_the_death_of_an_engine_and_a_full_queue(
    error: Exception, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.live.session._RETRY_SECONDS", 0.0)
    watched = _Watched(told, [error, error])

    async def test(session: LiveSession) -> None:
        session.send(Input("Good morning. "))
        await told.until_idle([session])
        assert not watched.errors
        _, event = await anext(aiter(session.events()))
        assert _pieces([event]) == [{"text": "Guten Morgen.", "start": 0, "end": 13}]

    _with_session(told, test)


def test_a_session_goes_on_with_another_model(told: Told) -> None:
    async def test(session: LiveSession) -> None:
        session.send(Input("My sister has bought a new red "))
        await told.until_idle([session])
        told.pipeline = Pipeline(told.engine, told.pipeline.limits)
        session.send(Input("car. "))
        await told.until_idle([session])
        _, event = await anext(aiter(session.events()))
        text = "".join(str(piece["text"]) for piece in _pieces([event]) if isinstance(piece, dict))
        assert text.startswith("Meine Schwester hat")
        assert text.endswith(".")

    _with_session(told, test)


def test_sessions_are_bounded_in_number_and_for_each_client(told: Told) -> None:
    async def run() -> None:
        sessions = LiveSessions(4, 10.0, told.clock)
        first = sessions.start(told.session(), "one")
        sessions.start(told.session(), "one")
        with pytest.raises(QueueFull, match="at most 4 live sessions, 2 for each client"):
            sessions.check("one")
        others = [sessions.start(told.session(), "two") for _ in range(2)]
        with pytest.raises(QueueFull):
            sessions.check("three")
        assert sessions.find(first.id) is first
        await sessions.drop(first)
        with pytest.raises(NotFound):
            sessions.find(first.id)
        sessions.check("three")
        sessions.end_all("draining")
        for session in others:
            assert [event async for _, event in session.events()][-1] == {"end": "draining"}
        await asyncio.sleep(0)
        assert len(sessions) == 0

    asyncio.run(run())


def test_a_session_without_input_commits_what_it_has_and_ends(told: Told) -> None:
    async def run() -> None:
        sessions = LiveSessions(4, 10.0, told.clock)
        session = sessions.start(told.session(), "one")
        session.send(Input("Good morning"))
        told.clock.now += 9
        sessions.end_idle()
        assert session.end_reason is None
        told.clock.now += 2
        sessions.end_idle()
        await told.until_idle([session])
        events = [event async for _, event in session.events()]
        assert _pieces(events) == [{"text": "Guten Morgen", "start": 0, "end": 12}]
        assert events[-1] == {"end": "idle"}
        with pytest.raises(NotFound, match="has ended"):
            session.send(Input("x"))

    asyncio.run(run())


def test_a_dropped_session_frees_its_rows(told: Told) -> None:
    async def run() -> None:
        sessions = LiveSessions(4, 10.0, told.clock)
        session = sessions.start(told.session(), "one")
        session.send(Input("Where is the station? " * 5))
        await asyncio.sleep(0)
        told.engine.step()
        assert told.engine.has_work
        await sessions.drop(session)
        told.engine.step()
        assert not told.engine.has_work

    asyncio.run(run())
