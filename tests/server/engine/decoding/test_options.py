"""Every option over tables of probabilities, against plain Python, batched with other options."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from server.engine.decoding.request_decoder import RequestDecoder
from server.interface.request import Completion, FinishReason, Request
from tests.fakes.engine import END, FakeEngine, LogProbs, Table, Tokens, random_table, request
from tests.fakes.reference_search import everything
from tests.fakes.sentence_params import changed, sentence_params
from tests.server.engine.decoding.reference_options import attention, coverage_bonus, expected, own_log_probability

VOCAB = 9
A, B, C = 1, 2, 3
PLAIN = sentence_params(max_new_tokens=7, return_scores=True)
RULES = {
    "nothing": PLAIN,
    "repetition penalty": changed(PLAIN, repetition_penalty=1.8),
    "repetition encouraged": changed(PLAIN, repetition_penalty=0.5),
    "no repeated tokens": changed(PLAIN, no_repeat_ngram_size=1),
    "no repeated bigrams": changed(PLAIN, no_repeat_ngram_size=2),
    "suppressed tokens": changed(PLAIN, suppress_tokens=(2, 5)),
    "suppressed phrases": replace(PLAIN, suppress_phrases=((1,), (3, 4), (6, 6, 6), (7, 8, 7))),
    "a minimal length": replace(PLAIN, min_new_tokens=5),
    "a target prefix": replace(PLAIN, target_prefix=(4, 2)),
    "a prefix and a minimal length": replace(PLAIN, target_prefix=(4, 2), min_new_tokens=3),
    "a prefix whose tokens count as said": changed(PLAIN, target_prefix=(4, 2, 4), no_repeat_ngram_size=1),
    "a prefix whose tokens are penalised": changed(PLAIN, target_prefix=(4, 2, 4), repetition_penalty=2.0),
    "everything at once": changed(
        PLAIN,
        target_prefix=(4,),
        repetition_penalty=1.3,
        no_repeat_ngram_size=2,
        suppress_tokens=(2,),
        suppress_phrases=((3, 4),),
        min_new_tokens=2,
    ),
}
BEAM_RULES = {
    "coverage": changed(PLAIN, coverage_penalty=0.4),
    "coverage behind a prefix": changed(PLAIN, coverage_penalty=0.4, target_prefix=(3, 5)),
    "coverage and early stopping": changed(PLAIN, coverage_penalty=2.0, early_stopping=True),
    "more patience": changed(PLAIN, patience=2.0),
    "more patience and early stopping": changed(PLAIN, patience=1.7, early_stopping=True),
    "less patience": changed(PLAIN, patience=0.5),
}


def _mixed(beam_size: int) -> list[Request]:
    """Return requests with one option each, over several sources."""
    params = [*RULES.values(), *(BEAM_RULES.values() if beam_size > 1 else ())]
    sources = [(5, 3, END), (7, 1, 2, 8, END), (6, END), (2, 2, 4, 1, END)]
    return [
        request(source, replace(each, beam_size=beam_size, num_hypotheses=min(beam_size, 2)))
        for each, source in itertools.product(params, sources)
    ]


def _assert_as_expected(table: Table, completion: Completion) -> None:
    params, source = completion.request.params, tuple(completion.request.source.tolist())
    wanted = expected(table, source, params)
    assert [tuple(each.token_ids) for each in completion.hypotheses] == [tokens for tokens, _, _ in wanted], params
    ours = [(each.log_probability, each.score) for each in completion.hypotheses]
    np.testing.assert_allclose(ours, [scores for _, *scores in wanted], atol=1e-4, err_msg=str(params))


@pytest.mark.parametrize("beam_size", [1, 2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_every_option_equals_its_reference_while_other_requests_have_others(beam_size: int, seed: int) -> None:
    table = random_table(seed, VOCAB, end_bias=0.5)
    for completion in FakeEngine(table, max_rows=16).run(_mixed(beam_size)):
        _assert_as_expected(table, completion)


def test_beams_and_greedy_with_all_options_share_their_steps() -> None:
    table = random_table(11, VOCAB, end_bias=0.5)
    mixed = [one for requests in zip(_mixed(1), _mixed(3), _mixed(2), strict=False) for one in requests]
    for completion in FakeEngine(table, max_rows=24).run(mixed):
        _assert_as_expected(table, completion)


def test_a_plain_request_gets_the_same_bits_beside_requests_with_options() -> None:
    table = random_table(5, VOCAB, end_bias=0.5)
    plain = [request((5, 3, END), replace(PLAIN, beam_size=beam_size)) for beam_size in (1, 2, 3)]
    alone = [FakeEngine(table).run([request((5, 3, END), each.params)])[0].hypotheses for each in plain]
    together = FakeEngine(table, max_rows=24).run([*_mixed(2), *plain, *_mixed(1)])
    assert [done.hypotheses for done in together if done.request in plain] == alone


@pytest.mark.parametrize("seed", range(8))
def test_as_many_beams_as_prefixes_find_the_best_score_with_coverage(seed: int) -> None:
    vocab, source, table = 3, (2, 1, END), random_table(seed, 3)
    params = sentence_params(beam_size=8, num_hypotheses=8, max_new_tokens=2, coverage_penalty=0.7)

    def everywhere(_: Tokens, prefix: Tokens) -> LogProbs:
        return table(source, prefix)

    ranked = sorted(
        (
            (tokens, score + coverage_bonus(source, (*tokens, END)[:2], params))
            for tokens, _, score in everything(everywhere, vocab, params)
        ),
        key=lambda each: -each[1],
    )
    assert len(ranked) == 7, "as many as eight beams can hold"
    [done] = FakeEngine(table).run([request(source, params)])
    assert [tuple(each.token_ids) for each in done.hypotheses] == [tokens for tokens, _ in ranked]
    np.testing.assert_allclose([each.score for each in done.hypotheses], [score for _, score in ranked], atol=1e-5)


def test_token_details_equal_the_table() -> None:
    table, source = random_table(3, VOCAB, end_bias=0.5), (5, 3, 7, END)
    for beam_size, prompt in ((1, ()), (3, ()), (1, (4, 2)), (3, (4,))):
        params = changed(
            PLAIN,
            beam_size=beam_size,
            num_hypotheses=beam_size,
            target_prefix=prompt,
            return_token_scores=True,
            num_token_alternatives=3,
            return_attention=True,
        )
        [done] = FakeEngine(table).run([request(source, params)])
        for hypothesis in done.hypotheses:
            answer: Tokens = tuple(hypothesis.token_ids)
            tokens = (*answer, END) if hypothesis.finish_reason is FinishReason.STOP else answer
            rows = [table(source, tokens[:place]) for place in range(len(tokens))]
            details = hypothesis.details
            assert details is not None
            np.testing.assert_allclose(
                details.log_probabilities, [row[token] for row, token in zip(rows, tokens, strict=True)], atol=1e-5
            )
            for row, best in zip(rows, details.alternatives, strict=True):
                assert [token for token, _ in best] == np.argsort(-row)[:3].tolist()
                np.testing.assert_allclose([gained for _, gained in best], np.sort(row)[::-1][:3], atol=1e-5)
            assert details.attention is not None
            looked = [attention(source, answer[:place]) for place in range(len(answer))]
            np.testing.assert_allclose(details.attention, looked, atol=1e-6)
            own = own_log_probability(table, source, prompt, tokens[len(prompt) :])
            assert hypothesis.log_probability == pytest.approx(own, abs=1e-5)


def test_a_forced_translation_is_scored_like_teacher_forcing_in_any_batch() -> None:
    table = random_table(3, VOCAB, end_bias=0.5)
    targets = [(END,), (4, END), (1, 1, 1, 8, 2, END), (5, 3, END)]
    sources = [(5, 3, END), (7, END), (6, 4, 2, END), (1, END)]
    asked = [
        request(source, sentence_params(forced_target=target, length_penalty=0.5, return_token_scores=True))
        for source, target in zip(sources, targets, strict=True)
    ]
    others = _mixed(2)
    done = FakeEngine(table, max_rows=8).run([others[0], *asked, *others[1:]])[1 : 1 + len(asked)]
    for completion, source, target in zip(done, sources, targets, strict=True):
        [hypothesis] = completion.hypotheses
        gained = [float(table(source, target[:place])[token]) for place, token in enumerate(target)]
        assert hypothesis.token_ids == list(target[:-1])
        assert hypothesis.details is not None
        np.testing.assert_allclose(hypothesis.details.log_probabilities, gained, atol=1e-5)
        assert hypothesis.log_probability == pytest.approx(math.fsum(gained), abs=1e-5)
        assert hypothesis.score == pytest.approx(math.fsum(gained) / math.sqrt(len(target)), abs=1e-5)


def test_requests_with_forced_tokens_are_dropped_failed_and_moved_like_others() -> None:
    table = random_table(9, VOCAB, end_bias=0.5)
    engine = FakeEngine(table, max_rows=8)
    reads = replace(PLAIN, target_prefix=(4, 2, 1, 5), beam_size=3)
    expires = request((7, END), reads, deadline=102.5)
    engine.scheduler.submit([expires, request((5, 3, END), PLAIN), kept := request((6, 2, END), reads)])
    done: dict[Request, Completion] = {}
    while len(done) < 3:
        done.update((completion.request, completion) for completion in engine.step())
    assert done[expires].finish_reason is FinishReason.DEADLINE
    _assert_as_expected(table, done[kept])
    assert engine.engine.num_rows_taken == engine.scheduler.num_rows_reserved == 0

    engine.scheduler.submit([request((7, END), reads), request((5, END), reads)])
    engine.step()
    engine.runner.decode_error = RuntimeError("broken")
    assert [completion.error is not None for completion in engine.step()] == [True, True]
    assert engine.runner.cache.num_live == engine.engine.num_rows_taken == engine.scheduler.num_rows_reserved == 0
    [again] = engine.run([request((6, 2, END), reads)])
    _assert_as_expected(table, again)


@pytest.mark.parametrize("prompt", [(), (4, 2)])
def test_alternatives_begin_with_the_most_likely_tokens_and_continue_greedily(prompt: Tokens) -> None:
    table, source = random_table(13, VOCAB, end_bias=0.5), (5, 3, END)
    params = changed(PLAIN, target_prefix=prompt, num_hypotheses=5, return_alternatives=True)
    engine = FakeEngine(table, max_rows=16)
    [done, *_] = engine.run([request(source, params), *_mixed(2)])
    first_tokens = [token for token in np.argsort(-table(source, prompt)).tolist() if token != END][:5]
    assert len(done.hypotheses) == 5
    for token, hypothesis in zip(first_tokens, done.hypotheses, strict=True):
        rest = replace(PLAIN, target_prefix=(*prompt, token), max_new_tokens=params.max_new_tokens - 1)
        [(tokens, log_probability, _)] = expected(table, source, rest)
        assert tuple(hypothesis.token_ids) == tokens
        first = float(table(source, prompt)[token])
        assert hypothesis.log_probability == pytest.approx(first + log_probability, abs=1e-5)


@pytest.mark.parametrize("method", ["select", "force_token", "annotate", "scored"])
def test_an_option_that_fails_ends_its_own_request_and_no_other(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    works = getattr(RequestDecoder, method)

    def fails_for_one(decoder: RequestDecoder, *arguments: object) -> object:
        if decoder.params.options.suppress_tokens == (8,):
            raise RuntimeError("a bug of this option")
        return works(decoder, *arguments)

    monkeypatch.setattr(RequestDecoder, method, fails_for_one)
    table = random_table(9, VOCAB, end_bias=0.5)
    for beam_size in (1, 2):
        broken = changed(
            PLAIN, beam_size=beam_size, suppress_tokens=(8,), target_prefix=(1, 2) if method == "force_token" else ()
        )
        if method == "scored":
            broken = replace(broken, beam_size=1, forced_target=(1, 2, END))
        engine, others = FakeEngine(table, max_rows=16), _mixed(beam_size)
        plain = [request((5, 3, END), replace(PLAIN, beam_size=beam_size)) for _ in range(4)]
        first, *rest = engine.run([request((5, 3, END), broken), *plain, *others])
        assert first.error is not None
        for completion in rest:
            _assert_as_expected(table, completion)
        assert engine.engine.num_rows_taken == engine.scheduler.num_rows_reserved == engine.runner.cache.num_live == 0
