"""Work that an engine gives its model, and reports."""

import itertools
import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from server.engine.batch import Batch, SearchGroup
from server.engine.decoding.candidate_selection import CandidateSelection, Selected
from server.engine.decoding.request_rows import RequestRows, StepOutputs
from server.engine.engine import StepGuard
from server.interface.errors import EngineFailed
from server.interface.request import Completion, FinishReason, Request, Sampling, SentenceParams
from tests.fakes.engine import END, FakeEngine, Table, Tokens, copying_table, random_table, request, spelled_out
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


def test_a_request_gets_the_same_answer_whenever_it_arrives() -> None:
    table = random_table(12, VOCAB)
    requests = _mixed(40)
    alone = [_answers(FakeEngine(table).run([_again(each)]))[0] for each in requests]
    engine = FakeEngine(table, max_rows=12)
    done: dict[Request, Completion] = {}
    arrivals = random.Random(0)
    waiting = list(requests)
    while len(done) < len(requests):
        for _ in range(min(arrivals.randrange(4), len(waiting))):
            engine.scheduler.submit([waiting.pop(0)])
        done.update((completion.request, completion) for completion in engine.step())
    assert _answers([done[each] for each in requests]) == alone


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


def test_a_request_ends_at_its_own_limit() -> None:
    engine = FakeEngine(copying_table(VOCAB))
    [done] = engine.run([_greedy(20, max_new_tokens=4)])
    assert done.hypotheses[0].token_ids == [3, 3, 3, 3]
    assert done.finish_reason is FinishReason.LENGTH
    assert len(engine.runner.decoded) == 4


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


VOCAB = 12


def _greedy(length: int) -> Request:
    """Return a request that the copying table answers after `length` steps."""
    return _beam(length, beam_size=1)


def _beam(length: int, beam_size: int) -> Request:
    return request(
        [*([3] * (length - 1)), END],
        sentence_params(beam_size, max_new_tokens=64, early_stopping=True, max_repetitions=0),
    )


def test_the_first_step_of_a_beam_request_needs_one_row_only() -> None:
    engine = FakeEngine(copying_table(VOCAB))
    engine.run([_beam(3, beam_size=5)])
    assert engine.runner.decoded[:2] == [1, 5]


def test_the_encoder_runs_once_for_all_requests_admitted_together() -> None:
    engine = FakeEngine(copying_table(VOCAB))
    requests = [_greedy(5), _beam(4, beam_size=4), _greedy(3)]
    engine.run(requests)
    engine.run([late := _greedy(2)])
    assert engine.runner.encoded == [
        [tuple(each.source.tolist()) for each in requests],
        [tuple(late.source.tolist())],
    ]


def test_requests_are_encoded_ahead_in_one_run_and_no_others_until_these_have_rows() -> None:
    engine = FakeEngine(copying_table(VOCAB), max_rows=4)
    requests = [_greedy(length) for length in (5, 5, 5, 5, 2, 2, 2, 2, 2)]
    engine.run(requests)
    assert [len(run) for run in engine.runner.encoded] == [8, 1]
    assert requests[8].timings.admitted == 100.0 + 7


def test_an_engine_with_nothing_to_do_runs_nothing() -> None:
    engine = FakeEngine(copying_table(VOCAB))
    assert engine.step() == []
    assert (engine.runner.encoded, engine.runner.decoded) == ([], [])


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


def test_an_error_in_the_options_of_a_request_ends_it_in_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(copying_table(12))
    ill, other = (
        request([3, 3, 3, END], sentence_params(max_new_tokens=8, suppress_tokens=(token,))) for token in (6, 7)
    )
    engine.scheduler.submit([ill, other])
    engine.step()
    select = CandidateSelection.select

    def broken(
        selection: CandidateSelection, sequences: NDArray[np.int32], num_candidates: int, rows: RequestRows
    ) -> Selected:
        if selection.params is ill.params:
            raise RuntimeError("a bug in an option")
        return select(selection, sequences, num_candidates, rows)

    with monkeypatch.context() as patched:
        patched.setattr(CandidateSelection, "select", broken)
        [failed] = engine.step()
    assert failed.request is ill
    assert isinstance(failed.error, EngineFailed)
    while not (done := engine.step()):
        pass
    [completed] = done
    assert completed.request is other
    assert completed.hypotheses[0].token_ids == [3, 3, 3]


def test_an_exception_becomes_one_failed_completion_for_each_request() -> None:
    requests, ended = [request([5, END]), request([6, END])], list[Completion]()
    with StepGuard(ended, lambda: requests):
        raise ValueError
    assert [completion.request for completion in ended] == requests
    for completion in ended:
        assert isinstance(completion.error, EngineFailed)
        assert "ValueError" in str(completion.error)
    assert ended[0].error is not ended[1].error


def test_without_an_exception_no_request_is_taken() -> None:
    def taken() -> list[Request]:
        raise AssertionError

    ended: list[Completion] = []
    with StepGuard(ended, taken):
        pass
    assert not ended


def test_an_interrupt_is_not_suppressed() -> None:
    ended: list[Completion] = []
    with pytest.raises(KeyboardInterrupt), StepGuard(ended, list):
        raise KeyboardInterrupt
    assert not ended


VOCAB = 8


def _ignore(_token_ids: list[int], _is_complete: bool) -> None:
    """Do nothing; a request with a listener streams."""


def _request(source: Sequence[int], params: SentenceParams, streams: bool) -> Request:
    asked = request(source, params)
    asked.on_progress = _ignore if streams else None
    return asked


def _run(engine: FakeEngine, requests: Sequence[Request]) -> tuple[list[Completion], dict[Request, list[list[int]]]]:
    """Return the completions, and the stream updates before them."""
    streamed: dict[Request, list[list[int]]] = {}
    done: dict[Request, Completion] = {}
    engine.scheduler.submit(requests)
    while len(done) < len(requests):
        done.update((completion.request, completion) for completion in engine.step())
        for asked, tokens in engine.stream_updates:
            assert asked not in done
            streamed.setdefault(asked, []).append(tokens)
    return [done[asked] for asked in requests], streamed


def _best(completion: Completion) -> list[int]:
    return completion.hypotheses[0].token_ids


def _mixed(streams: Sequence[bool]) -> list[Request]:
    return [
        _request(
            [number % 7 + 1, number % 3 + 1, 0],
            sentence_params(
                beam_size=(1, 2, 4, 3)[number % 4],
                length_penalty=(1.0, 0.0, -0.5, 2.0)[number // 4 % 4],
                max_new_tokens=(16, 3, 30)[number % 3],
                early_stopping=number % 5 == 0,
                return_scores=True,
            ),
            streams=each,
        )
        for number, each in enumerate(streams)
    ]


def test_greedy_streams_every_token_in_its_step() -> None:
    table: dict[Tokens, list[float]] = {(): [0, 0, 1, 0], (2,): [0, 0, 0, 1], (2, 3): [0, 1, 0, 0]}
    asked = _request([5, 0], sentence_params(max_new_tokens=9), streams=True)
    [done], streamed = _run(FakeEngine(spelled_out(table)), [asked])
    assert _best(done) == [2, 3, 1]
    assert streamed == {asked: [[2], [2, 3], [2, 3, 1]]}


def test_beams_stream_the_common_prefix_of_all_of_them_and_the_best_hypothesis() -> None:
    table: dict[Tokens, list[float]] = {
        (): [0, 0.6, 0.4, 0],
        (1,): [0, 0.5, 0.5, 0],
        (2,): [0.5, 0, 0, 0.5],
        (1, 1): [1, 0, 0, 0],  # ends as the best, while (1, 2) runs on and agrees with it on the first token only
        (1, 2): [0, 0, 0, 1],
        (1, 2, 3): [0.5, 0, 0, 0.5],
    }
    asked = _request([5, 0], sentence_params(beam_size=2, max_new_tokens=9), streams=True)
    [done], streamed = _run(FakeEngine(spelled_out(table)), [asked])
    assert _best(done) == [1, 1]
    assert streamed == {asked: [[1]]}


def test_a_hypothesis_that_is_not_the_best_does_not_delay_the_stream() -> None:
    table: dict[Tokens, list[float]] = {
        (): [0, 0.7, 0.2, 0.1],
        (1,): [0.4, 0.31, 0.14, 0.15],
        (2,): [1, 0, 0, 0],
        (3,): [1, 0, 0, 0],
    }
    params = sentence_params(beam_size=3, length_penalty=0.0, max_new_tokens=9, num_hypotheses=2)
    asked = _request([5, 0], params, streams=True)
    engine = FakeEngine(spelled_out(table))
    engine.scheduler.submit([asked])
    engine.step()
    assert engine.stream_updates == []
    engine.step()  # (1) and (2) end; (1, 1), (1, 3) and (1, 2) run on
    assert engine.stream_updates == [(asked, [1])]
    [done] = engine.step()
    assert [hypothesis.token_ids for hypothesis in done.hypotheses] == [[1], [1, 1]]


@pytest.mark.parametrize("seed", range(6))
def test_streamed_tokens_are_never_revised(seed: int) -> None:
    table: Table = random_table(seed, VOCAB, end_bias=-0.5)
    requests = _mixed([True] * 60)
    completions, streamed = _run(FakeEngine(table, max_rows=24), requests)
    for done in completions:
        steps = streamed.get(done.request, [])
        for shorter, longer in pairwise([*steps, _best(done)]):
            assert longer[: len(shorter)] == shorter
        assert [len(tokens) for tokens in steps] == sorted({len(tokens) for tokens in steps})
    beams = [done for done in completions if done.request.params.beam_size > 1]
    assert sum(done.request in streamed for done in beams) > len(beams) / 4, "a poor test: few tokens were streamed"


def test_answers_are_equal_with_streams_among_them_and_only_those_have_updates() -> None:
    table = random_table(11, VOCAB, end_bias=-0.5)
    plain, nothing = _run(FakeEngine(table, max_rows=24), _mixed([False] * 60))
    mixed = _mixed([number % 3 == 0 for number in range(60)])
    completions, streamed = _run(FakeEngine(table, max_rows=24), mixed)
    assert [done.hypotheses for done in completions] == [done.hypotheses for done in plain]
    assert not nothing
    assert streamed
    assert all(asked.on_progress is not None for asked in streamed)


def test_requests_that_ended_were_dropped_or_failed_are_not_followed() -> None:
    engine = FakeEngine(random_table(2, VOCAB, end_bias=-9.0))
    cancelled, failed = (_request([each, 0], sentence_params(max_new_tokens=30), streams=True) for each in (1, 2))
    engine.scheduler.submit([cancelled, failed])
    engine.step()
    engine.scheduler.cancel([cancelled])
    engine.step()
    assert [asked for asked, _ in engine.stream_updates] == [failed]
    engine.runner.decode_error = RuntimeError("the device is gone")
    assert [done.request for done in engine.step()] == [failed]
    assert engine.stream_updates == []
    engine.run([_request([3, 0], sentence_params(beam_size=2, max_new_tokens=5), streams=True)])
    assert engine.engine.num_streams == 0


_OPTIONS = {
    "a target prefix": sentence_params(beam_size=4, max_new_tokens=12, target_prefix=(4, 2)),
    "a prefix read greedily": sentence_params(max_new_tokens=12, target_prefix=(4, 2, 4)),
    "one sample": sentence_params(max_new_tokens=12, sampling=Sampling(seed=5, temperature=2.0)),
    "several samples": sentence_params(max_new_tokens=12, num_hypotheses=3, sampling=Sampling(seed=5, temperature=2.0)),
    "alternatives": sentence_params(max_new_tokens=12, num_hypotheses=3, return_alternatives=True),
    "groups": sentence_params(beam_size=4, max_new_tokens=12, num_beam_groups=2, diversity_penalty=0.5),
    "required phrases": sentence_params(beam_size=4, max_new_tokens=12, required_phrases=((3, 5),)),
    "rules": sentence_params(beam_size=3, max_new_tokens=12, repetition_penalty=1.5, no_repeat_ngram_size=2),
    "coverage": sentence_params(beam_size=4, max_new_tokens=12, coverage_penalty=0.5, patience=2.0),
    "loops": sentence_params(beam_size=3, max_new_tokens=30, max_repetitions=2),
}


@pytest.mark.parametrize("seed", range(6))
def test_with_options_streamed_tokens_are_not_revised_either(seed: int) -> None:
    table: Table = random_table(seed, VOCAB)
    sources = ([3, 1, 0], [5, 2, 0], [6, 0])
    requests = [_request(source, params, streams=True) for params in _OPTIONS.values() for source in sources]
    completions, streamed = _run(FakeEngine(table), requests)
    plain = [_request(list(asked.source), asked.params, streams=False) for asked in requests]
    assert [_best(done) for done in completions] == [_best(done) for done in _run(FakeEngine(table), plain)[0]]
    for asked, done in zip(requests, completions, strict=True):
        for earlier, later in pairwise([*streamed.get(asked, []), _best(done)]):
            assert later[: len(earlier)] == earlier, asked.params


def test_a_prefix_is_streamed_with_the_tokens_after_it_and_one_sample_token_by_token() -> None:
    params = [_OPTIONS["a prefix read greedily"], _OPTIONS["one sample"]]
    prefixed, sampled = (_request([3, 1, 0], each, streams=True) for each in params)
    completions, streamed = _run(FakeEngine(random_table(0, VOCAB, end_bias=-4.0)), [prefixed, sampled])
    assert all(tokens[:3] == [4, 2, 4] for tokens in streamed[prefixed])
    # The last token ends the request and arrives with its answer.
    assert [len(tokens) for tokens in streamed[sampled]] == list(range(1, len(_best(completions[1]))))
