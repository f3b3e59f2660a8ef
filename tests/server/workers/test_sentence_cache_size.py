"""Size of the cache with answers that have much more than tokens."""

import gc
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from bundle.loading import Bundle
from server.interface.request import Completion, Request, TokenDetails
from server.workers.sentence_cache import CachedEngineClient
from tests.fakes.cached_echo import Watcher, ask, run
from tests.fakes.echo import EchoGenerator
from tests.fakes.sentence_params import sentence_params

MAX_BYTES = 128 * 1024


@dataclass
class _DetailedEcho(EchoGenerator):
    """Engine whose answers have attention of some KiB, or a number of alternatives."""

    attention_kib: int = 0
    num_alternatives: int = 0

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        completions = await super().generate(requests)
        details = TokenDetails(
            [], [[(5, -1.0)]] * self.num_alternatives, np.zeros((self.attention_kib, 256), np.float32)
        )
        return [
            replace(done, hypotheses=[replace(each, details=details) for each in done.hypotheses])
            for done in completions
        ]


@pytest.mark.parametrize(("attention_kib", "num_alternatives"), [(0, 0), (3, 0), (0, 100), (64, 0), (200, 0)])
def test_as_many_answers_are_kept_as_fit(attention_kib: int, num_alternatives: int, echo_bundle: Bundle) -> None:
    engine = _DetailedEcho(echo_bundle, attention_kib=attention_kib, num_alternatives=num_alternatives)
    watcher = Watcher()
    generator = CachedEngineClient(engine, 18, watcher, MAX_BYTES)

    async def scenario() -> None:
        for token in range(20):
            assert (await generator.generate([ask(token)]))[0].hypotheses
        for token in range(20 - watcher.num_kept, 20):
            await generator.generate([ask(token)])

    run(scenario)
    assert watcher.outcomes == Counter(decoded=20, cached=watcher.num_kept)
    smallest = max(1024 * attention_kib + 100 * num_alternatives, 1000)
    assert watcher.num_kept <= min(MAX_BYTES // smallest, 18)
    assert (watcher.num_kept == 0) == (attention_kib == 200)
    assert watcher.num_bytes <= MAX_BYTES


def test_long_parameters_of_answers_stay_within_the_limit_of_bytes(echo_bundle: Bundle) -> None:
    watcher = Watcher()
    generator = CachedEngineClient(EchoGenerator(echo_bundle), 10_000, watcher, 1_000_000)

    async def scenario() -> None:
        for first in range(50):
            phrases = tuple(tuple(range(first + phrase, first + phrase + 100)) for phrase in range(64))
            await generator.generate([ask(5, params=sentence_params(suppress_phrases=phrases))])

    tracemalloc.start()
    try:
        run(scenario)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert watcher.num_bytes <= 1_000_000
    assert held < 3_000_000
