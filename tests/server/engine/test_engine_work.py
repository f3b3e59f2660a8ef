"""Work that an engine gives its model, and reports."""

import numpy as np

from server.interface.request import Request
from tests.fakes.engine import END, FakeEngine, copying_table, request
from tests.fakes.sentence_params import sentence_params

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
