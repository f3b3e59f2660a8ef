import numpy as np
import pytest

from server.engine.decoding.diverse_beam_search import DiverseBeamSearch
from server.engine.decoding.search import SearchLimits
from server.interface.request import FinishReason, SentenceParams
from tests.fakes.engine import END, FakeEngine, Table, Tokens, random_table, request
from tests.fakes.reference_search import Scored, beam
from tests.fakes.sentence_params import changed, sentence_params
from tests.server.engine.decoding.reference_options import own_log_probability

VOCAB = 9
SOURCES: list[Tokens] = [(5, 3, END), (7, 1, 2, 8, END), (6, END), (2, 2, 4, 1, END)]


def _diverse(table: Table, source: Tokens, params: SentenceParams) -> list[Scored]:
    """Reference search in plain Python: groups of beams that choose one after the other."""
    size = params.beam_size // params.options.num_beam_groups
    running: list[list[tuple[Tokens, float]]] = [[((), 0.0)] for _ in range(params.options.num_beam_groups)]
    held: list[list[Scored]] = [[] for _ in running]
    has_finished = [False] * params.options.num_beam_groups
    for length in range(1, params.max_new_tokens + 1):
        at_limit = length == params.max_new_tokens
        chosen: list[int] = []
        for group in range(params.options.num_beam_groups):
            if has_finished[group]:
                continue
            continuations = [
                ((*prefix, token), total + float(gained) - params.options.diversity_penalty * chosen.count(token))
                for prefix, total in running[group]
                for token, gained in enumerate(table(source, prefix))
            ]
            best = sorted(continuations, key=lambda each: -each[1])[: 2 * size]
            running[group] = [(tokens, total) for tokens, total in best if tokens[-1] != END and not at_limit][:size]
            for tokens, total in best[:size]:
                if tokens[-1] == END or at_limit:
                    answer = tokens[:-1] if tokens[-1] == END else tokens
                    own = own_log_probability(table, source, (), tokens)
                    held[group].append((answer, own, total / len(tokens) ** params.options.length_penalty))
            held[group] = sorted(held[group], key=lambda each: -each[2])[:size]
            last = best[:size] if at_limit else running[group]
            chosen += [tokens[-1] for tokens, _ in last if tokens[-1] != END]
            if running[group] and len(held[group]) == size:
                best_possible = running[group][0][1] / length**params.options.length_penalty
                has_finished[group] = params.options.early_stopping or best_possible <= held[group][-1][2]
    found = sorted((each for group in held for each in group), key=lambda each: -each[2])
    return found[: params.num_hypotheses]


def _for_source(table: Table, source: Tokens) -> Table:
    return lambda _, prefix: table(source, prefix)


@pytest.mark.parametrize(("beam_size", "num_groups"), [(2, 2), (4, 4), (6, 3), (8, 2)])
@pytest.mark.parametrize("early_stopping", [False, True])
def test_groups_choose_one_after_the_other_and_pay_for_tokens_of_others(
    beam_size: int, num_groups: int, early_stopping: bool
) -> None:
    num_unlike_beams = 0
    for seed in range(4):
        table = random_table(seed, VOCAB, end_bias=0.5)
        params = [
            sentence_params(
                beam_size,
                length_penalty,
                7,
                beam_size,
                early_stopping,
                num_beam_groups=num_groups,
                diversity_penalty=penalty,
            )
            for length_penalty, penalty in ((1.0, 0.7), (0.0, 0.2), (0.6, 3.0), (1.0, 0.0))
        ]
        requests = [request(source, each) for source in SOURCES for each in params]
        plain = [request(source, sentence_params(3, max_new_tokens=7)) for source in SOURCES]
        for done in FakeEngine(table, max_rows=20).run([*requests, *plain])[: len(requests)]:
            source, asked = tuple(done.request.source.tolist()), done.request.params
            expected = _diverse(table, source, asked)
            assert [tuple(each.token_ids) for each in done.hypotheses] == [tokens for tokens, _, _ in expected]
            ours = [(each.log_probability, each.score) for each in done.hypotheses]
            np.testing.assert_allclose(ours, [scores for _, *scores in expected], atol=1e-4)
            bare = changed(asked, num_beam_groups=1, diversity_penalty=0.0)
            num_unlike_beams += [t for t, *_ in expected] != [t for t, *_ in beam(_for_source(table, source), bare)]
    assert num_unlike_beams > 20


def test_a_finished_group_keeps_its_hypotheses_to_the_end() -> None:
    # The first group ends with token 5; the limit, at which the model can only end, comes before the second has.
    params = sentence_params(beam_size=2, num_beam_groups=2, max_new_tokens=3, diversity_penalty=1.0)
    search = DiverseBeamSearch(2, 2, SearchLimits(2, 16, end_token=0, forced_end=True))
    search.add(params)
    for of_first, of_second in (
        ({5: -0.5, 6: -0.6, 7: -3.0, 0: -9.0}, {5: -0.5, 6: -0.6, 7: -3.0, 0: -9.0}),
        ({0: -0.7, 5: -0.9, 6: -3.0, 7: -4.0}, {5: -0.1, 6: -4.0, 7: -4.0, 0: -9.0}),
        ({5: -1.0, 6: -2.0, 7: -3.0, 0: -4.0}, {5: -1.0, 6: -2.0, 7: -3.0, 0: -4.0}),
    ):
        ranked = [sorted(each, key=each.__getitem__, reverse=True) for each in (of_first, of_second)]
        likely = [[each[token] for token in tokens] for each, tokens in zip((of_first, of_second), ranked, strict=True)]
        choice = search.advance(np.array([ranked], np.int64), np.array([likely], np.float32))
    assert choice.finished.all()
    held = search._groups[0].all_hypotheses(0)
    assert [(hypothesis.token_ids, hypothesis.finish_reason) for hypothesis in held] == [([5], FinishReason.STOP)]
