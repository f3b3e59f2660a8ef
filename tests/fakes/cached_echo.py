"""Echo engine behind a cache, and helpers that send it requests."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from server.interface.engine_client import SentenceOutcome
from server.interface.request import Completion, Request, SentenceParams, Timings
from server.workers.cache import CachedEngineClient
from server.workers.pool import EnginePool, PoolOptions
from tests.fakes.echo import EchoGenerator
from tests.fakes.engine import END, FakeRunner, fake_bundle, random_table, request
from tests.fakes.event_loop import until
from tests.fakes.sentence_params import sentence_params

PATIENCE_SECONDS = 60.0
SOON_SECONDS = 0.05  # enough for the calls of a test to begin on a busy machine
GREEDY = sentence_params(max_new_tokens=16)


class Watcher:
    """Observer that records its calls."""

    def __init__(self) -> None:
        self.outcomes = Counter[SentenceOutcome]()
        self.num_kept = self.num_bytes = 0

    def sentences(self, outcome: SentenceOutcome, count: int) -> None:
        self.outcomes[outcome] += count

    def cache_grew(self, num_sentences: int, num_bytes: int) -> None:
        self.num_kept += num_sentences
        self.num_bytes += num_bytes


class Cached:
    """Echo engine behind a cache, on one event loop, with a gate that delays the echo."""

    def __init__(self, echo: EchoGenerator, max_sentences: int = 100) -> None:
        self.echo = echo
        self.watcher = Watcher()
        self.generator = CachedEngineClient(echo, max_sentences, self.watcher)

    def hold(self) -> asyncio.Event:
        """Return an event; the engine answers only after it is set."""
        self.echo.gate = asyncio.Event()
        self.echo.entered = asyncio.Event()
        return self.echo.gate

    def begin(self, *requests: Request) -> asyncio.Task[list[Completion]]:
        """Start a call that runs during the test."""
        return asyncio.create_task(self.generator.generate(requests))

    @property
    def decoded(self) -> list[list[list[int]]]:
        """The sources of every call of the engine."""
        return [[each.source.tolist() for each in batch] for batch in self.echo.batches]


def ask(*tokens: int, params: SentenceParams = GREEDY, expires_in: float | None = None) -> Request:
    """Return a sentence that arrives now and expires in `expires_in` seconds."""
    now = time.monotonic()
    asked = request([*tokens, END], params, None if expires_in is None else now + expires_in)
    asked.timings = Timings(now)
    return asked


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario on an event loop of its own."""
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_SECONDS))


def tokens_of(completions: Sequence[Completion]) -> list[list[int]]:
    """Return the tokens of the best hypotheses."""
    return [completion.hypotheses[0].token_ids for completion in completions]


async def joined(cached: Cached, *calls: asyncio.Task[list[Completion]]) -> None:
    """Let calls proceed until only the engine's answer is missing."""
    await cached.echo.entered.wait()
    for _ in calls:
        await asyncio.sleep(0)


def random_replicas(max_waiting: int = 100) -> EnginePool:
    """Return an engine over a table of random answers, not started."""
    runner = FakeRunner(random_table(seed=3, vocab=12, end_bias=-1.0))
    return EnginePool(fake_bundle(12), [runner], PoolOptions(max_rows=16, max_waiting=max_waiting))


async def queued(replicas: EnginePool, num_sentences: int) -> None:
    """Let calls proceed until `num_sentences` wait in engines that have not been started."""
    await until(lambda: replicas.status().waiting >= num_sentences)
