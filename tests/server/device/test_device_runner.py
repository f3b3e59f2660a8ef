"""The device runner, with the host as its device, against the CPU runner: the same tokens, whoever comes and goes."""

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.random_models import random_sources
from export.bundle import Bundle
from server.device.memory import HostMemory
from server.device.runner import DeviceRunner
from server.device.sessions import DeviceSessions
from server.request import Completion, GenerationParams, Request
from server.runner import ModelRunner, OnnxRunner, OnnxSessions
from tests.fakes import DrivenEngine, request
from tests.server.device.conftest import Layouts

MAX_ROWS = 13  # no power of two, so that the largest number of rows is a size of its own

GREEDY = GenerationParams(max_new_tokens=20)
MIXTURES = {
    "greedy": [GREEDY],
    "greedy with scores": [GREEDY, GenerationParams(max_new_tokens=20, return_scores=True)],
    "beams": [GenerationParams(4, max_new_tokens=20, num_hypotheses=4, return_scores=True)],
    "greedy and beams": [GREEDY, GenerationParams(3, max_new_tokens=20), GREEDY, GenerationParams(8, max_new_tokens=9)],
    "guided": [
        GenerationParams(max_new_tokens=20, repetition_penalty=1.3, return_scores=True),
        GenerationParams(2, max_new_tokens=20, min_new_tokens=5),
        GenerationParams(max_new_tokens=20, return_attention=True),
        GREEDY,
    ],
}


def cpu_runner(layouts: Layouts) -> OnnxRunner:
    return OnnxRunner(OnnxSessions.open(layouts.step, 1), MAX_ROWS, 64)


def device_runner(bundle: Bundle, *, runs_ahead: bool = True) -> DeviceRunner:
    return DeviceRunner(DeviceSessions.open(bundle, HostMemory()), MAX_ROWS, 64, runs_ahead=runs_ahead)


def requests(bundle: Bundle, params: list[GenerationParams], number: int = 40) -> list[Request]:
    """Random sentences of all lengths, whose parameters take turns."""
    sources = random_sources(bundle, number, seed=5)
    return [request(source.tolist(), params[place % len(params)]) for place, source in enumerate(sources)]


def decode(runner: ModelRunner, bundle: Bundle, wanted: list[Request]) -> list[Completion]:
    """Submit a few more after every second step, so that rows are begun, moved and freed all the time."""
    special = bundle.config.special_tokens
    engine = DrivenEngine(runner, special.end_of_sequence, special.forced_end)
    done: dict[Request, Completion] = {}
    waiting, steps = list(wanted), 0
    while len(done) < len(wanted):
        if steps % 2 == 0 and waiting:
            engine.scheduler.submit(waiting[:3])
            del waiting[:3]
        done.update((completion.request, completion) for completion in engine.step())
        steps += 1
    return [done[each] for each in wanted]


def assert_alike(ours: list[Completion], theirs: list[Completion]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.error is None
        assert other.error is None
        assert [h.token_ids for h in mine.hypotheses] == [h.token_ids for h in other.hypotheses]
        for hypothesis, expected in zip(mine.hypotheses, other.hypotheses, strict=True):
            assert hypothesis.finish_reason is expected.finish_reason
            np.testing.assert_allclose(hypothesis.score, expected.score, atol=1e-4)


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("runs_ahead", [False, True])
def test_a_device_answers_what_the_cpu_runner_answers(layouts: Layouts, mixture: str, runs_ahead: bool) -> None:
    params = MIXTURES[mixture]
    ours = decode(device_runner(layouts.parts, runs_ahead=runs_ahead), layouts.parts, requests(layouts.parts, params))
    theirs = decode(cpu_runner(layouts), layouts.step, requests(layouts.step, params))
    assert_alike(ours, theirs)
    assert len({tuple(done.hypotheses[0].token_ids) for done in ours}) > len(ours) / 2
