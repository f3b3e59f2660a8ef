"""Tokens of streaming requests that become final."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from server.interface.request import Completion, Request, Sampling, SentenceParams
from tests.fakes.engine import FakeEngine, Table, Tokens, random_table, request, spelled_out
from tests.fakes.sentence_params import sentence_params

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
