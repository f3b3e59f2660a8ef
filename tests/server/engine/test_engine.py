"""The loop of an engine: equal answers in any company, rows, failures, and the work that it gives its model."""

import itertools
import random

import numpy as np
import pytest

from server.engine.batch import Batch, SearchGroup
from server.engine.model_runner import StepOutputs
from server.interface.errors import EngineFailed
from server.interface.request import Completion, FinishReason, Request
from tests.fakes.engine import END, FakeEngine, Tokens, copying_table, random_table, request, spelled_out
from tests.fakes.sentence_params import sentence_params

VOCAB = 12
LIMITS = (1, 5, 12)


def _greedy(length: int, max_new_tokens: int = 64) -> Request:
    """Return a request that the copying table answers after `length` steps."""
    return request([*([3] * (length - 1)), END], sentence_params(max_new_tokens=max_new_tokens, max_repetitions=0))


def _beam(length: int, beam_size: int) -> Request:
    return request(
        [*([3] * (length - 1)), END],
        sentence_params(beam_size, max_new_tokens=64, early_stopping=True, max_repetitions=0),
    )


def _mixed(num_requests: int) -> list[Request]:
    """Return requests of every beam size, limit, penalty and length, with different sources."""
    choices = itertools.cycle(itertools.product(LIMITS, [1, 2, 4, 3, 5, 1], [0.0, 1.0], [False, True]))
    params = [
        sentence_params(
            beam_size, penalty, limit, num_hypotheses=beam_size, early_stopping=early, return_scores=limit == 5
        )
        for _, (limit, beam_size, penalty, early) in zip(range(num_requests), choices, strict=False)
    ]
    return [request([number + 2, *([4] * (number % 7)), END], each) for number, each in enumerate(params)]


def _again(asked: Request) -> Request:
    return request(asked.source.tolist(), asked.params)


def _answers(completions: list[Completion]) -> list[tuple[FinishReason, list[str]]]:
    return [
        (done.finish_reason, [repr((each.token_ids, each.log_probability, each.score)) for each in done.hypotheses])
        for done in completions
    ]


def _finish(engine: FakeEngine) -> dict[Request, Completion]:
    """Step until no request is left."""
    done: dict[Request, Completion] = {}
    while engine.scheduler.num_waiting or engine.scheduler.num_running:
        done.update((completion.request, completion) for completion in engine.step())
    return done


def _assert_empty(engine: FakeEngine) -> None:
    assert engine.engine.num_running == engine.runner.cache.num_live == 0
    assert engine.scheduler.num_rows_reserved == engine.scheduler.num_running == 0


def test_a_request_gets_the_same_answer_alone_and_batched_in_any_order_of_arrival() -> None:
    table = random_table(11, VOCAB)
    requests = _mixed(72)
    alone = [_answers(FakeEngine(table).run([_again(each)]))[0] for each in requests]
    for seed in range(3):
        order = list(range(len(requests)))
        random.Random(seed).shuffle(order)
        engine = FakeEngine(table, max_rows=16)
        together = engine.run([_again(requests[place]) for place in order])
        assert _answers(together) == [alone[place] for place in order]
        assert max(engine.runner.decoded) == 16
        _assert_empty(engine)


def test_requests_of_different_age_length_and_beam_size_share_every_step() -> None:
    engine = FakeEngine(copying_table(VOCAB))
    engine.scheduler.submit([_greedy(6), _beam(5, beam_size=3)])
    engine.step()
    engine.step()
    engine.scheduler.submit([_greedy(2), _beam(4, beam_size=2)])
    _finish(engine)
    # Beams spread after their first step. The requests end with the sixth, fifth, fourth and sixth step.
    assert engine.runner.decoded == [1 + 1, 1 + 3, 1 + 3 + 1 + 1, 1 + 3 + 1 + 2, 1 + 3 + 2, 1 + 2]
    assert len(engine.runner.encoded) == 2


def test_a_short_request_that_arrives_while_a_long_one_decodes_is_answered_first() -> None:
    engine = FakeEngine(copying_table(VOCAB))
    long, short = _greedy(50), _greedy(3)
    engine.scheduler.submit([long])
    for _ in range(10):
        assert engine.step() == []
    engine.scheduler.submit([short])
    done = _finish(engine)
    assert list(done) == [short, long]
    assert short.timings.finished == 100.0 + 12
    assert engine.runner.decoded == [1] * 10 + [2] * 3 + [1] * 37


def test_answers_and_times_are_those_of_the_table_and_the_clock() -> None:
    engine = FakeEngine(copying_table(VOCAB))
    [done] = engine.run([request([5, 6, END], sentence_params(max_new_tokens=8, return_scores=True))])
    assert done.hypotheses[0].token_ids == [5, 6]
    assert done.hypotheses[0].log_probability == -0.375
    assert done.hypotheses[0].score == -0.125
    assert done.finish_reason is FinishReason.STOP
    timings = done.request.timings
    assert (timings.admitted, timings.encoded, timings.assigned, timings.first_token) == (100.0, 100.0, 100.0, 100.0)
    assert timings.finished == 102.0


def test_rows_of_finished_requests_are_assigned_in_the_next_step() -> None:
    engine = FakeEngine(copying_table(VOCAB), max_rows=4)
    requests = [_greedy(length) for length in (2, 5, 3, 4, 2, 2)]
    completions = engine.run(requests)
    assert [done.request.timings.assigned - 100.0 for done in completions] == [0, 0, 0, 0, 2, 3]
    assert [done.request.timings.queue_seconds for done in completions] == [0, 0, 0, 0, 2, 3]
    assert engine.runner.decoded == [4, 4, 4, 4, 2]


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("reason", [FinishReason.CANCELLED, FinishReason.DEADLINE])
@pytest.mark.parametrize("steps_before", [0, 1, 4])
def test_rows_of_cancelled_and_expired_requests_are_free_within_a_step_and_others_are_unchanged(
    beam_size: int, reason: FinishReason, steps_before: int
) -> None:
    table = random_table(13, VOCAB, end_bias=-3.0)
    engine = FakeEngine(table, max_rows=16)
    neighbours = _mixed(5)
    params = sentence_params(beam_size, max_new_tokens=60)
    deadline = 100.0 + steps_before if reason is FinishReason.DEADLINE else None
    dropped = request([9, 9, END], params, deadline)
    engine.scheduler.submit([*neighbours[:2], dropped, *neighbours[2:]])
    done: dict[Request, Completion] = {}
    for _ in range(steps_before):
        done.update((completion.request, completion) for completion in engine.step())
    reserved = engine.scheduler.num_rows_reserved
    if reason is FinishReason.CANCELLED:
        engine.scheduler.cancel([dropped])
    step = {completion.request: completion for completion in engine.step()}
    assert (step[dropped].finish_reason, step[dropped].hypotheses, step[dropped].error) == (reason, [], None)
    assert dropped.timings.finished == 100.0 + steps_before
    if steps_before > 1:
        ended = sum(each.params.beam_size for each in step)
        assert engine.scheduler.num_rows_reserved == reserved - ended
        assert engine.runner.cache.num_live == reserved - ended
    done |= step | _finish(engine)
    alone = [_answers(FakeEngine(table).run([_again(each)]))[0] for each in neighbours]
    assert _answers([done[each] for each in neighbours]) == alone
    _assert_empty(engine)


def test_an_error_in_the_encoder_fails_the_admitted_requests_only() -> None:
    engine = FakeEngine(copying_table(VOCAB))
    before, newcomers, after = _greedy(6), [_greedy(4), _beam(4, beam_size=3)], _beam(3, beam_size=2)
    engine.scheduler.submit([before])
    engine.step()
    engine.scheduler.submit(newcomers)
    engine.runner.encode_error = RuntimeError("no memory for the encoder")
    failed = {done.request: done for done in engine.step()}
    assert set(failed) == set(newcomers)
    for done in failed.values():
        assert isinstance(done.error, EngineFailed)
        assert done.hypotheses == []
        assert done.request.timings.finished == 101.0
    assert engine.runner.cache.num_live == engine.scheduler.num_rows_reserved == 1
    engine.scheduler.submit([after])
    done_after = _finish(engine)
    assert [done_after[each].hypotheses[0].token_ids for each in (before, after)] == [[3] * 5, [3] * 2]
    _assert_empty(engine)


def test_an_error_in_a_step_fails_its_requests_and_the_loop_continues() -> None:
    engine = FakeEngine(copying_table(VOCAB), max_rows=6)
    running, waiting = [_greedy(6), _beam(6, beam_size=4), _greedy(6)], _beam(4, beam_size=5)
    engine.scheduler.submit([*running, waiting])
    engine.step()
    engine.step()
    engine.runner.decode_error = RuntimeError("the device is gone")
    failed = engine.step()
    assert {done.request for done in failed} == set(running)
    assert all(isinstance(done.error, EngineFailed) and "RuntimeError" in str(done.error) for done in failed)
    assert len({id(done.error) for done in failed}) == 3
    assert engine.runner.cache.num_live == engine.engine.num_rows_taken == 0
    done = _finish(engine)
    assert done[waiting].hypotheses[0].token_ids == [3, 3, 3]
    _assert_empty(engine)


def test_a_request_whose_row_cannot_be_written_fails_and_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(copying_table(VOCAB), max_rows=4)
    assigned, waiting = _greedy(4), _beam(4, beam_size=4)

    def broken(*arguments: object) -> None:
        raise MemoryError

    engine.scheduler.submit([assigned, waiting])
    with monkeypatch.context() as patched:
        patched.setattr(engine.runner.cache, "begin", broken)
        [failed] = engine.step()
    assert failed.request is assigned
    assert isinstance(failed.error, EngineFailed)
    assert _finish(engine)[waiting].hypotheses[0].token_ids == [3, 3, 3]
    _assert_empty(engine)


def test_a_model_that_returns_nan_fails_the_requests_concerned() -> None:
    healthy = copying_table(VOCAB)

    def table(source: Tokens, prefix: Tokens) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        if source[0] == 9 and len(prefix) == 1:
            return np.full(VOCAB, np.nan, np.float32)
        return healthy(source, prefix)

    engine = FakeEngine(table)
    params = sentence_params(beam_size=3, max_new_tokens=8)
    ill, *others = engine.run([request([9, 5, END], params), _beam(4, beam_size=3), _greedy(4)])
    assert isinstance(ill.error, EngineFailed)
    assert [done.hypotheses[0].token_ids for done in others] == [[3] * 3] * 2
    _assert_empty(engine)


def test_a_request_that_ended_before_an_error_in_the_same_step_keeps_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = FakeEngine(copying_table(VOCAB))
    ends, fails = _greedy(2), _beam(5, beam_size=3)
    engine.scheduler.submit([ends, fails])
    engine.step()

    advance = Batch.advance

    def broken(batch: Batch, group: SearchGroup, outputs: StepOutputs) -> list[Completion]:
        if group.search.beam_size > 1:
            raise RuntimeError("a bug in moving rows")
        return advance(batch, group, outputs)

    with monkeypatch.context() as patched:
        patched.setattr(Batch, "advance", broken)
        done = {completion.request: completion for completion in engine.step()}
    assert done[ends].hypotheses[0].token_ids == [3]
    assert isinstance(done[fails].error, EngineFailed)
    _assert_empty(engine)
    assert engine.run([_beam(3, beam_size=4)])[0].hypotheses[0].token_ids == [3, 3]


def test_forced_ends_reach_the_searches() -> None:
    table = spelled_out({(): [0.0, 0.5, 0.5], (1,): [0.0, 1.0, 0.0], (1, 1): [0.0, 1.0, 0.0]})
    engine = FakeEngine(table, forced_end=True)
    params = [sentence_params(beam_size, max_new_tokens=3) for beam_size in (1, 2)]
    completions = engine.run([request([5, END], each) for each in params])
    assert [done.hypotheses[0].token_ids for done in completions] == [[1, 1], [1, 1]]
    assert {done.finish_reason for done in completions} == {FinishReason.LENGTH}


def test_requests_are_encoded_ahead_in_one_run_and_no_others_until_these_have_rows() -> None:
    engine = FakeEngine(copying_table(VOCAB), max_rows=4)
    requests = [_greedy(length) for length in (5, 5, 5, 5, 2, 2, 2, 2, 2)]
    engine.run(requests)
    assert [len(run) for run in engine.runner.encoded] == [8, 1]
    assert requests[8].timings.admitted == 100.0 + 7


def test_an_observer_receives_rows_and_seconds_of_every_step() -> None:
    seen: list[tuple[int, float]] = []

    class Observer:
        def step(self, rows: int, seconds: float) -> None:
            seen.append((rows, seconds))

    engine = FakeEngine(copying_table(VOCAB), observer=Observer())
    engine.run([_greedy(2), _greedy(3)])
    assert seen == [(2, 0.0), (2, 0.0), (1, 0.0)]


def test_ten_times_the_tokens_move_no_more_memory_for_each_of_them() -> None:
    """A beam request copies the valid prefix of rows that change their parent, and no others."""
    engine = FakeEngine(copying_table(VOCAB))
    engine.scheduler.submit([_greedy(60), _greedy(60)])
    engine.step()
    for _ in range(50):
        before = engine.runner.cache.self_cache.copy()
        engine.step()
        after = engine.runner.cache.self_cache
        changed = ~((before == after) | (np.isnan(before) & np.isnan(after)))
        assert np.count_nonzero(changed) == 2 * 2  # one key and one value for each row
