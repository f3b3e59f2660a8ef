from dataclasses import replace

import numpy as np
import pytest

from server.engine.decoding.loop_detection import LONGEST_LOOP, LoopDetector
from server.interface.request import FinishReason
from tests.fakes.engine import END, FakeEngine, LogProbs, Table, Tokens, random_table, request, spelled_out
from tests.fakes.sentence_params import sentence_params

A, B = 1, 2


def _is_looping(tokens: Tokens, limit: int) -> bool:
    """Return whether `tokens` end with more than `limit` repetitions of a sequence."""
    return any(
        len(tokens) >= size * (limit + 1) and tokens[-size * (limit + 1) :] == tokens[-size:] * (limit + 1)
        for size in range(1, LONGEST_LOOP + 1)
    )


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_the_detector_finds_every_loop_in_the_step_that_completes_it(limit: int) -> None:
    random = np.random.default_rng(limit)
    num_found = 0
    for _ in range(200):
        # Mostly repetitions of a short sequence, with occasional errors.
        pattern = random.integers(1, 4, random.integers(1, 10))
        tokens = np.where(random.random((1, 2, 60)) < 0.05, 4, np.resize(pattern, 60)).astype(np.int32)
        guard = LoopDetector(1)
        guard.add(0, sentence_params(max_repetitions=limit))
        for length in range(1, 61):
            found = guard.looping(tokens, np.array([length], np.int32))
            expected = [_is_looping(tuple(beam[:length].tolist()), limit) for beam in tokens[0]]
            assert (found.tolist() if found is not None else [[False, False]]) == [expected]
            if any(expected):
                num_found += 1
                break
    assert num_found > 50


def _saying(*tokens: int) -> Table:
    """Always the next of these tokens, over and over; the end is never likely."""

    def table(_: Tokens, prefix: Tokens) -> LogProbs:
        log_probs = np.array([-9.0, -4.0, -5.0, -6.0], np.float32)
        log_probs[tokens[len(prefix) % len(tokens)]] = -0.125
        return log_probs

    return table


@pytest.mark.parametrize("loop", [(A,), (A, B), (A, B, B), (A, A, B, B, A, B, B, B)])
def test_a_greedy_answer_in_a_loop_is_ended_with_its_own_reason(loop: Tokens) -> None:
    params = sentence_params(max_new_tokens=60, max_repetitions=4, return_scores=True)
    [done] = FakeEngine(_saying(*loop)).run([request((A, END), params)])
    assert done.hypotheses[0].token_ids == list(loop * 5)
    assert done.hypotheses[0].log_probability == pytest.approx(-0.125 * 5 * len(loop))
    assert done.finish_reason is FinishReason.REPETITION


def test_a_looping_beam_becomes_a_hypothesis_and_the_others_continue() -> None:
    looping = {(A,) * length: [0.0, 0.9, 0.1] for length in range(9)}
    ending = {(*(A,) * length, B): [1.0, 0.0, 0.0] for length in range(9)}
    params = sentence_params(2, 0.0, 20, 2, max_repetitions=3)
    [done] = FakeEngine(spelled_out(looping | ending)).run([request((A, END), params)])
    assert [each.token_ids for each in done.hypotheses] == [[A] * 4, [B]]
    assert [each.finish_reason for each in done.hypotheses] == [FinishReason.REPETITION, FinishReason.STOP]
    assert np.exp(done.hypotheses[0].log_probability) == pytest.approx(0.9**4)


def test_a_looping_beam_with_its_required_phrase_becomes_a_hypothesis_and_one_without_it_ends() -> None:
    def table(_: Tokens, prefix: Tokens) -> LogProbs:
        return np.log(np.array([0.0, 1.0, 0.0] if B in prefix else [0.0, 0.6, 0.4]) + 1e-30).astype(np.float32)

    params = replace(sentence_params(2, 0.0, 20, 1, max_repetitions=3), required_phrases=((B,),))
    [done] = FakeEngine(table).run([request((A, END), params)])
    assert [each.token_ids for each in done.hypotheses] == [[B, A, A, A, A]]
    assert done.hypotheses[0].finish_reason is FinishReason.REPETITION


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_a_limit_that_is_never_reached_changes_no_answer(beam_size: int) -> None:
    table = random_table(4, 6, end_bias=-1.0)
    guarded, free = (
        FakeEngine(table).run(
            [
                request(
                    (source, END),
                    sentence_params(beam_size, max_new_tokens=30, max_repetitions=limit, return_scores=True),
                )
                for source in range(1, 6)
            ]
        )
        for limit in (20, 0)
    )
    assert [each.hypotheses for each in guarded] == [each.hypotheses for each in free]
