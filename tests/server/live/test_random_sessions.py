"""Random sessions: whatever is sent and whenever, nothing is taken back, and the same arrivals give the same answers.

`LIVE_SESSIONS=10000` runs more of them.
"""

import asyncio
import json
import os
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from bundle.loading import Bundle
from server.http.protocols.live import take_message
from server.interface.errors import KvasirError
from server.live.session import Event, LiveSession, LiveSessions
from server.workers.stepped_engine import SteppedEngine
from tests.fakes.engine import FakeRunner, random_table
from tests.server.live.conftest import END_BIAS, Told

NUM_SESSIONS = int(os.environ.get("LIVE_SESSIONS", "200"))
AT_ONCE = 25
IDLE_SECONDS = 10.0
WORDS = (
    *(
        "Good",
        "morning.",
        "How",
        "are",
        "you",
        "today?",
        "Dr. Smith",
        "5",
        "3.5 kg",
        "...",
        "tea,",
        "\n",
        "\n\n",
        "dog. ",
        "",
        " ",
    ),
    *(
        "me@example.org",
        "https://example.org/a?b=",
        "{{ a b }}",
        "`x",
        "y`",
        "Wie geht's?",
        "ﬁne",
        "e\u0301",
        "👩\u200d🚀",
        "\ud83d",
        "你好。",
        "世界",
        "สวัสดี",
        "שלום!",
        "\u00a0",
        "\u200b",
        "\x00",
        "\ufeff",
    ),
)
DAMAGED = (
    "",
    "[]",
    "{",
    "null",
    '{"append": 5}',
    '{"text": "x"}',
    '{"replace_from": -1}',
    '{"replace_from": 1e9, "text": ""}',
)
NUM_WORDS_OF_A_FLOOD = 5000  # more than may wait


@dataclass
class Played:
    """One session with its arrivals, which are a message or None for a silence, and what its readers got."""

    session: LiveSession
    arrivals: Sequence[str | None]
    events: list[tuple[int, Event]] = field(default_factory=list)

    async def read(self) -> None:
        """Read to the end; sometimes leave, and read on."""
        draw, position = random.Random(len(self.arrivals)), 0
        while not self.events or "end" not in self.events[-1][1]:
            async for number, event in self.session.events(position):
                self.events.append((number, event))
                position = number
                if draw.random() < 0.2:
                    break

    @property
    def commitments(self) -> list[object]:
        """What was committed, piece by piece."""
        return [piece for _, event in self.events for piece in event.get("committed", ())]  # type: ignore[attr-defined]

    def check(self) -> None:
        """Raise `AssertionError` unless the answers hold together."""
        settled = 0
        for _, event in self.events[:-1]:
            assert event.keys() == {"committed", "draft", "read", "settled"}, event
            assert settled <= int(str(event["settled"])) <= int(str(event["read"]))
            settled = int(str(event["settled"]))
        assert self.events[-1][1]["end"] in ("final", "idle", "draining")
        assert not any(event.get("draft") for _, event in self.events[-2:]), "the end commits everything"
        for piece in self.commitments:
            assert isinstance(piece, dict)
            assert piece["text"]
            assert 0 <= piece["start"] <= piece["end"]


def _message(draw: random.Random, sent: int) -> str | None:
    if draw.random() < 0.05:
        return None
    if draw.random() < 0.1:
        return draw.choice(DAMAGED)
    text = " ".join(draw.choices(WORDS, k=draw.randrange(1, 5))) + draw.choice((" ", ""))
    message: dict[str, object] = {"append": text}
    if draw.random() < 0.25:
        message = {"replace_from": draw.randrange(sent + 5), "text": text}
    elif draw.random() < 0.01:
        message = {"append": "word " * NUM_WORDS_OF_A_FLOOD}
    message |= {"final": True} if draw.random() < 0.1 else {}
    message |= {"end": True} if draw.random() < 0.02 else {}
    return json.dumps(message)


def _played(told: Told, seed: int) -> Played:
    draw = random.Random(seed)
    arrivals: list[str | None] = []
    for _ in range(draw.randrange(2, 14)):
        arrivals.append(_message(draw, 8 * len(arrivals)))
    options = {
        "policy": draw.choice(("align-att", "local-agreement", "wait-k")),
        "frame": draw.randrange(4),
        "beam_size": draw.choice((1, 1, 3)),
    }
    return Played(told.session(**options), arrivals)  # type: ignore[arg-type]


async def _run(told: Told, seeds: Sequence[int], draw: random.Random | None = None) -> list[Played]:
    """Play sessions at once. With `draw` the next message does not wait until those before are translated."""
    sessions = LiveSessions(2 * len(seeds), IDLE_SECONDS, told.clock)
    all_played = [_played(told, seed) for seed in seeds]
    for each in all_played:
        sessions.start(each.session, f"client {each.session.id}")
    reading = [asyncio.create_task(each.read()) for each in all_played]
    running = [each.session for each in all_played]
    for number in range(max(len(each.arrivals) for each in all_played)):
        told.clock.now += 1.0
        for each in all_played:
            message = each.arrivals[number] if number < len(each.arrivals) else ""
            if message is None:
                each.session.last_input -= IDLE_SECONDS
                continue
            with suppress(KvasirError):
                take_message(each.session, message)
        sessions.end_idle()
        if draw is None:
            await told.until_idle(running)
        for _ in range(draw.randrange(12) if draw else 0):
            told.engine.step()
            await asyncio.sleep(0)
    sessions.end_all("draining")
    while not all(task.done() for task in reading):
        if told.engine.has_work:
            told.engine.step()
        await asyncio.sleep(0)
    await asyncio.gather(*reading)
    return all_played


def test_nothing_is_taken_back_and_the_same_arrivals_give_the_same_answers(echo_bundle: Bundle) -> None:
    num_commitments = 0
    for first in range(0, NUM_SESSIONS, AT_ONCE):
        table = random_table(first, echo_bundle.config.shapes.target_vocab_size, END_BIAS)
        told = Told(SteppedEngine(echo_bundle, FakeRunner(table, prefills=first % 2 == 0), max_admitted_tokens=10_000))
        seeds = range(first, first + AT_ONCE)
        together = asyncio.run(_run(told, seeds))
        for each in together:
            each.check()
            num_commitments += len(each.commitments)
        few = random.Random(first).sample(range(AT_ONCE), 3)
        for index, alone in zip(few, asyncio.run(_run(told, [seeds[index] for index in few])), strict=True):
            assert alone.commitments == together[index].commitments, seeds[index]
        for each in asyncio.run(_run(told, seeds, random.Random(first))):
            each.check()
    assert num_commitments > 3 * NUM_SESSIONS
