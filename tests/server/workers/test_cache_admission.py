"""Calls that reach a full engine: those whose sentences the cache probably has are admitted to a look-up."""

import pytest

from bundle.loading import Bundle
from server.interface.errors import QueueFull
from server.workers.sentence_cache import CachedEngineClient
from tests.fakes.cached_echo import Watcher, ask, run
from tests.fakes.echo import EchoGenerator


def _admitted(client: CachedEngineClient, num_calls: int) -> list[int]:
    """Return the numbers of the calls that were admitted, from 1."""
    admitted = []
    for number in range(1, num_calls + 1):
        try:
            client.check_admission()
        except QueueFull:
            continue
        admitted.append(number)
    return admitted


@pytest.fixture
def engine(echo_bundle: Bundle) -> EchoGenerator:
    return EchoGenerator(echo_bundle)


def test_while_the_cache_has_found_nothing_one_call_in_sixteen_is_looked_up(engine: EchoGenerator) -> None:
    client = CachedEngineClient(engine, 100, Watcher())
    engine.error = QueueFull("full", 1.0)
    assert _admitted(client, 40) == [16, 32]


def test_while_the_cache_finds_sentences_every_call_is_looked_up(engine: EchoGenerator) -> None:
    client = CachedEngineClient(engine, 100, Watcher())

    async def scenario() -> None:
        for _ in range(20):
            await client.generate([ask(5)])

    run(scenario)
    engine.error = QueueFull("full", 1.0)
    assert _admitted(client, 20) == list(range(1, 21))


def test_without_a_cache_a_full_engine_rejects_every_call(engine: EchoGenerator) -> None:
    client = CachedEngineClient(engine, 0, Watcher())
    engine.error = QueueFull("full", 1.0)
    assert _admitted(client, 40) == []
