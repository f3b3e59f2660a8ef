"""The device runner, with the host as its device, returns the tokens of the CPU runner while requests come and go."""

import numpy as np
import pytest

from bundle.loading import Bundle
from server.engine.model_runner import ModelRunner
from server.engine.runners.device.cache import DeviceCache
from server.engine.runners.device.memory import HostMemory
from server.engine.runners.device.runner import DeviceRunner
from server.engine.runners.device.sessions import DeviceSessions, bucket
from server.engine.runners.onnx import OnnxRunner, OnnxSessions
from server.interface.request import Completion, Request, SentenceParams
from tests.fakes.engine import DrivenEngine, request
from tests.fakes.sentence_params import sentence_params
from tests.model.families.random_families import random_sources
from tests.server.engine.runners.device.conftest import Layouts

MAX_ROWS = 13  # no power of two, so that the largest number of rows is a size of its own

GREEDY = sentence_params(max_new_tokens=20)
MIXTURES = {
    "greedy": [GREEDY],
    "greedy with scores": [GREEDY, sentence_params(max_new_tokens=20, return_scores=True)],
    "beams": [sentence_params(4, max_new_tokens=20, num_hypotheses=4, return_scores=True)],
    "greedy and beams": [GREEDY, sentence_params(3, max_new_tokens=20), GREEDY, sentence_params(8, max_new_tokens=9)],
    "with decoders": [
        sentence_params(max_new_tokens=20, repetition_penalty=1.3, return_scores=True),
        sentence_params(2, max_new_tokens=20, min_new_tokens=5),
        sentence_params(max_new_tokens=20, return_attention=True),
        GREEDY,
    ],
}


def cpu_runner(layouts: Layouts) -> OnnxRunner:
    return OnnxRunner(OnnxSessions.open(layouts.step, 1), MAX_ROWS, 64)


def device_runner(bundle: Bundle, *, runs_ahead: bool = True) -> DeviceRunner:
    return DeviceRunner(DeviceSessions.open(bundle, HostMemory()), MAX_ROWS, 64, runs_ahead=runs_ahead)


def requests(bundle: Bundle, params: list[SentenceParams], number: int = 40) -> list[Request]:
    """Return random sentences of all lengths with alternating parameters."""
    sources = random_sources(bundle, number, seed=5)
    return [request(source.tolist(), params[index % len(params)]) for index, source in enumerate(sources)]


def decode(runner: ModelRunner, bundle: Bundle, wanted: list[Request]) -> list[Completion]:
    """Decode requests, submitting a few after every second step, so that rows are begun, moved and freed."""
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
def test_the_device_runner_returns_the_answers_of_the_cpu_runner(layouts: Layouts, mixture: str) -> None:
    params = MIXTURES[mixture]
    theirs = decode(cpu_runner(layouts), layouts.step, requests(layouts.step, params))
    for runs_ahead in (False, True):
        runner = device_runner(layouts.parts, runs_ahead=runs_ahead)
        assert_alike(decode(runner, layouts.parts, requests(layouts.parts, params)), theirs)
    assert len({tuple(done.hypotheses[0].token_ids) for done in theirs}) > len(theirs) / 3


@pytest.mark.parametrize("mixture", ["greedy", "greedy and beams", "with decoders"])
def test_states_of_a_recurrent_decoder_follow_their_rows(recurrent_layouts: Layouts, mixture: str) -> None:
    """Steps that ran ahead in vain must not have changed a state."""
    parts, params = recurrent_layouts.parts, MIXTURES[mixture]
    ours = decode(device_runner(parts), parts, requests(parts, params))
    theirs = decode(cpu_runner(recurrent_layouts), recurrent_layouts.step, requests(parts, params))
    assert_alike(ours, theirs)
    assert len({tuple(done.hypotheses[0].token_ids) for done in ours}) > len(ours) / 3


def test_a_float16_bundle_runs_on_the_host_with_mostly_equal_answers(layouts: Layouts) -> None:
    ours = decode(device_runner(layouts.half), layouts.half, requests(layouts.half, [GREEDY]))
    theirs = decode(cpu_runner(layouts), layouts.step, requests(layouts.step, [GREEDY]))
    same = [a.hypotheses[0].token_ids == b.hypotheses[0].token_ids for a, b in zip(ours, theirs, strict=True)]
    assert sum(same) >= 0.9 * len(same)


def _begun(runner: DeviceRunner, bundle: Bundle, number: int) -> None:
    for owner, cross in enumerate(runner.encode(random_sources(bundle, number, seed=1))):
        row = int(runner.cache.assign(owner, 1)[0])
        runner.cache.write_source(row, cross, runner.start_token)


def _advance(runner: DeviceRunner, num_rows: int) -> list[int]:
    tokens = runner.decode(num_rows, 1, False).tokens[:, 0]
    runner.cache.previous_tokens[:num_rows] = tokens
    return [int(token) for token in tokens]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of rows of each greedy step, in order."""
    steps: list[int] = []
    start = DeviceRunner._start_greedy

    def record(self: DeviceRunner, num_rows: int, side: int) -> object:
        steps.append(num_rows)
        return start(self, num_rows, side)

    monkeypatch.setattr(DeviceRunner, "_start_greedy", record)
    return steps


def test_while_the_same_rows_continue_each_step_starts_once_and_ahead(layouts: Layouts, started: list[int]) -> None:
    runner = device_runner(layouts.parts)
    _begun(runner, layouts.parts, 3)
    _advance(runner, 3)
    assert started == [3]  # rows have just begun, and others may follow
    for steps in range(1, 6):
        _advance(runner, 3)
        assert started == [3] * (2 + steps)


@pytest.mark.parametrize("fixture", ["layouts", "recurrent_layouts"])
def test_a_step_that_ran_ahead_of_a_change_is_repeated(
    fixture: str, request: pytest.FixtureRequest, started: list[int]
) -> None:
    layouts: Layouts = request.getfixturevalue(fixture)
    answers = []
    for runs_ahead in (False, True):
        runner = device_runner(layouts.parts, runs_ahead=runs_ahead)
        _begun(runner, layouts.parts, 2)
        found = [_advance(runner, 2) for _ in range(4)]
        runner.cache.previous_tokens[1] = 3  # as a search may choose
        found.append(_advance(runner, 2))
        _begun(runner, layouts.parts, 1)  # one more row
        found += [_advance(runner, 3) for _ in range(4)]
        runner.cache.release(np.array([2]))
        found += [_advance(runner, 2) for _ in range(3)]
        answers.append(found)
    assert answers[0] == answers[1]


def test_additional_rows_of_a_bucket_do_not_change_the_others(layouts: Layouts) -> None:
    """Five rows run as eight; the content of the three others, even NaN, has no effect."""
    alone, beside = device_runner(layouts.parts), device_runner(layouts.parts)
    cache = beside.cache
    assert isinstance(cache, DeviceCache)
    for planes in (cache.self_planes, cache.cross_planes, cache.last_planes):
        HostMemory().upload(planes.block.address, np.full(planes.block.num_bytes // 4, np.nan, np.float32))
    for runner in (alone, beside):
        _begun(runner, layouts.parts, 5)
    assert [_advance(beside, 5) for _ in range(8)] == [_advance(alone, 5) for _ in range(8)]
    assert bucket(5, MAX_ROWS) == 8


def test_a_row_that_continues_beyond_its_limit_writes_no_other_row(layouts: Layouts) -> None:
    """A step that runs ahead of the host includes rows of requests that have finished."""
    runner = device_runner(layouts.parts)
    _begun(runner, layouts.parts, 2)
    limit = layouts.parts.config.shapes.max_target_tokens
    for _ in range(limit):
        tokens = runner.decode(2, 1, False).tokens[:, 0]
        runner.cache.previous_tokens[:2] = tokens
    runner.cache.past_lengths[0] = 0  # begins again while the other is full
    runner.cache.previous_tokens[0] = runner.start_token
    runner.cache.past_lengths[1] = limit - 1
    again = _advance(runner, 2)[0]
    fresh = device_runner(layouts.parts)
    _begun(fresh, layouts.parts, 2)
    assert again == _advance(fresh, 2)[0]
