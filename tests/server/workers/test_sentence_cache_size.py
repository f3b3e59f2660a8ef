"""Size of the cache with answers that have much more than tokens."""

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


@pytest.mark.parametrize(
    ("attention_kib", "num_alternatives", "num_kept"),
    [(0, 0, 8), (3, 0, 8), (4, 0, 4), (0, 100, 2), (31, 0, 1), (32, 0, 0)],
)
def test_a_large_answer_counts_as_several(
    attention_kib: int, num_alternatives: int, num_kept: int, echo_bundle: Bundle
) -> None:
    echo, watcher = (
        _DetailedEcho(echo_bundle, attention_kib=attention_kib, num_alternatives=num_alternatives),
        Watcher(),
    )
    generator = CachedEngineClient(echo, 8, watcher)

    async def scenario() -> None:
        for token in range(20):
            assert (await generator.generate([ask(token)]))[0].hypotheses
        for token in range(20 - num_kept, 20):
            await generator.generate([ask(token)])

    run(scenario)
    assert watcher.num_kept == num_kept
    assert watcher.outcomes == Counter(decoded=20, cached=num_kept)
