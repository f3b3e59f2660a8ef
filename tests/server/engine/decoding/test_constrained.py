"""Required phrases: the automaton that matches them, the banks of beams, and the answers of the search."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from server.engine.decoding.constrained import PhraseState, RequiredPhrases, bank_sizes
from server.interface.request import Completion, FinishReason
from server.interface.word_tokens import WordTokens
from tests.fakes.engine import END, FakeEngine, LogProbs, Table, Tokens, random_table, request, spelled_out
from tests.fakes.reference_search import everything
from tests.fakes.sentence_params import sentence_params
from tests.server.engine.decoding.reference_options import own_log_probability

SOURCE = (5, 3, END)
VOCAB = 9


def _has(tokens: Tokens, phrase: Tokens) -> bool:
    return any(tokens[place : place + len(phrase)] == phrase for place in range(len(tokens) - len(phrase) + 1))


def _answers(completion: Completion) -> list[Tokens]:
    return [tuple(each.token_ids) for each in completion.hypotheses]


@pytest.mark.parametrize("phrases", [((1,),), ((1, 1, 2),), ((1, 2), (2, 1)), ((3, 3, 1, 3, 3, 2), (3,))], ids=str)
def test_the_automaton_matches_phrases_and_returns_tokens_that_advance_them(phrases: tuple[Tokens, ...]) -> None:
    required = RequiredPhrases(phrases)
    for sequence in itertools.product((1, 2, 3), repeat=7):
        state = required.start
        for place, token in enumerate(sequence):
            state = required.advance(state, token)
            so_far = sequence[: place + 1]
            is_there = [_has(so_far, phrase) for phrase in phrases]
            assert state.is_met == all(is_there)
            begun = [
                max(length for length in range(len(phrase)) if so_far[len(so_far) - length :] == phrase[:length])
                for phrase, there in zip(phrases, is_there, strict=True)
                if not there
            ]
            complete = sum(len(phrase) for phrase, there in zip(phrases, is_there, strict=True) if there)
            assert state.num_met == complete + max(begun, default=0)
            missing = [phrase for phrase, there in zip(phrases, is_there, strict=True) if not there]
            assert state.wanted == {phrase[at] for phrase, at in zip(missing, begun, strict=True)}


@pytest.mark.parametrize("phrases", [((2,),), ((1, 3),), ((3,), (1,)), ((2, 2), (1,)), ((1, 2), (2, 3))], ids=str)
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_enough_beams_find_the_best_of_everything_that_has_the_phrases(
    phrases: tuple[Tokens, ...], length_penalty: float
) -> None:
    # Three tokens and the end: 27 prefixes of three tokens, and their continuations.
    params = sentence_params(60, length_penalty, 4, 3, required_phrases=phrases)
    for seed in range(5):
        table = random_table(seed, 4)
        ranked = [
            each for each in everything(_of_the_source(table), 4, params) if all(_has(each[0], p) for p in phrases)
        ]
        ranked.sort(key=lambda each: _has_overrun(table, each[0], phrases))
        [done] = FakeEngine(table, max_rows=64).run([request(SOURCE, params)])
        assert _answers(done) == [tokens for tokens, _, _ in ranked[:3]]
        ours = [(each.log_probability, each.score) for each in done.hypotheses]
        np.testing.assert_allclose(ours, [scores for _, *scores in ranked[:3]], atol=1e-4)


def _has_overrun(table: Table, tokens: Tokens, phrases: tuple[Tokens, ...]) -> bool:
    """Return whether a phrase is missing in any prefix behind which the end is the most likely token."""
    prefixes = [tokens[:length] for length in range(len(tokens))]
    return any(
        table(SOURCE, prefix).argmax() == END and not all(_has(prefix, phrase) for phrase in phrases)
        for prefix in prefixes
    )


def _ends(tokens: Tokens, phrase: Tokens) -> list[int]:
    return [place + len(phrase) for place in range(len(tokens)) if tokens[place : place + len(phrase)] == phrase]


def _is_confirmed(tokens: Tokens, phrase: Tokens, continuations: set[int]) -> bool:
    return any(end < len(tokens) and tokens[end] not in continuations for end in _ends(tokens, phrase))


def _has_word(tokens: Tokens, phrase: Tokens, continuations: set[int]) -> bool:
    return len(tokens) in _ends(tokens, phrase) or _is_confirmed(tokens, phrase, continuations)


@pytest.mark.parametrize(
    "groups",
    [(((1,),),), (((1, 1, 2),),), (((1,), (1, 3)),), (((1, 2), (2, 1)), ((3,),)), (((3, 3, 1), (3,)), ((2, 3),))],
    ids=str,
)
def test_a_phrase_counts_unless_the_next_token_continues_its_last_word(groups: tuple[tuple[Tokens, ...], ...]) -> None:
    continuations = {3}
    required = RequiredPhrases((), groups, WordTokens(frozenset(continuations)))
    for sequence in itertools.product((1, 2, 3), repeat=7):
        state = required.start
        for place, token in enumerate(sequence):
            state = required.advance(state, token)
            so_far = sequence[: place + 1]
            is_there = [any(_has_word(so_far, phrase, continuations) for phrase in group) for group in groups]
            assert state.is_met == all(is_there)
            assert (state.num_met == required.num_tokens) == all(is_there)
            # What follows decides about a phrase at the end, unless it has occurred before.
            assert state.is_unconfirmed == any(
                so_far[-len(phrase) :] == phrase and not _is_confirmed(so_far, phrase, continuations)
                for phrase in itertools.chain.from_iterable(groups)
            )


def test_a_term_may_be_inflected_and_a_phrase_may_not() -> None:
    # 1 is the term, 2 an ending, 3 the rest of a longer word, 4 begins another word.
    words = WordTokens(frozenset({2, 3}), frozenset({2}))
    for sequence in itertools.product((1, 2, 3, 4), repeat=5):
        term, phrase = RequiredPhrases((), (((1,),),), words), RequiredPhrases(((1,),), (), words)
        in_term, in_phrase = term.start, phrase.start
        for token in sequence:
            in_term, in_phrase = term.advance(in_term, token), phrase.advance(in_phrase, token)
        written = "".join(map(str, sequence))
        assert in_term.is_met == (re.search(r"12*(?![23])", written) is not None)
        assert in_phrase.is_met == (re.search(r"1(?![23])", written) is not None)


def test_the_search_goes_on_while_a_beam_can_improve_the_hypotheses() -> None:
    # (1,) and (1, 3) end first; (1, 2, 2) runs on and is more likely than the second of them.
    table = spelled_out(
        {
            (): [0, 1, 0, 0],
            (1,): [0.5, 0, 0.3, 0.2],
            (1, 2): [0, 0, 0.9, 0.1],
            (1, 3): [0.75, 0, 0, 0.25],
            (1, 2, 2): [1, 0, 0, 0],
        }
    )
    params = sentence_params(2, 0.0, 6, 2, required_phrases=((1,),))
    [done] = FakeEngine(table).run([request(SOURCE, params)])
    assert _answers(done) == [(1,), (1, 2, 2)]


def test_a_phrase_behind_the_end_of_the_sentence_is_a_last_resort() -> None:
    # After 1, 2 the sentence is complete. 3 is more likely behind it than before it.
    table = spelled_out(
        {
            (): [0, 0.94, 0.05, 0.01],
            (1,): [0.0, 0, 0.95, 0.05],
            (1, 2): [0.6, 0, 0, 0.4],
            (1, 3): [0.0, 0, 1, 0],
            (3,): [0.0, 1, 0, 0],
            (3, 1): [0.0, 0, 1, 0],
            (2,): [1.0, 0, 0, 0],
        }
    )
    params = sentence_params(4, max_new_tokens=6, required_phrases=((3,),))
    [done] = FakeEngine(table).run([request(SOURCE, params)])
    assert _answers(done)[0] == (1, 3, 2)
    without_room = spelled_out({(): [0, 1, 0, 0], (1,): [0, 0, 1, 0], (1, 2): [0.6, 0, 0, 0.4]})
    [done] = FakeEngine(without_room).run([request(SOURCE, params)])
    assert _answers(done)[0] == (1, 2, 3)


def test_any_alternative_of_a_term_is_enough_and_the_likeliest_is_chosen() -> None:
    table = random_table(7, VOCAB, end_bias=1.0)
    terms = (((4,), (6, 2), (8, 8)),)
    params = sentence_params(5, max_new_tokens=14, max_repetitions=0, required_terms=terms)
    for source in range(1, 9):
        [done] = FakeEngine(table).run([request((source, 3, END), params)])
        singles = [
            FakeEngine(table).run([request((source, 3, END), replace(params, required_terms=((phrase,),)))])[0]
            for phrase in terms[0]
        ]
        answer = _answers(done)[0]
        assert any(_has(answer, phrase) for phrase in terms[0])
        assert done.hypotheses[0].score >= min(each.hypotheses[0].score for each in singles)


def _of_the_source(table: Table) -> Table:
    def at_the_source(_: Tokens, prefix: Tokens) -> LogProbs:
        return table(SOURCE, prefix)

    return at_the_source


@pytest.mark.parametrize("beam_size", [2, 3, 5])
def test_every_answer_that_ends_has_all_phrases_beside_plain_requests(beam_size: int) -> None:
    table = random_table(7, VOCAB, end_bias=1.0)
    plain = sentence_params(beam_size, max_new_tokens=14, num_hypotheses=beam_size, max_repetitions=0)
    wanted = [((4,),), ((4, 6, 4),), ((8, 8), (7,)), ((1, 2, 3), (3, 4), (5,))]
    requests = [
        request((source, 3, END), replace(plain, required_phrases=phrases))
        for source in range(1, 6)
        for phrases in wanted
    ]
    beside = [request((source, 3, END), plain) for source in range(1, 6)]
    alone = [_answers(FakeEngine(table).run([request(each.source.tolist(), plain)])[0]) for each in beside]
    done = FakeEngine(table, max_rows=17).run([*requests, *beside])
    assert [_answers(each) for each in done[len(requests) :]] == alone
    num_complete = 0
    for completion in done[: len(requests)]:
        source, params = tuple(completion.request.source.tolist()), completion.request.params
        assert completion.hypotheses
        for hypothesis in completion.hypotheses:
            answer = tuple(hypothesis.token_ids)
            tokens = (*answer, END) if hypothesis.finish_reason is FinishReason.STOP else answer
            assert len(tokens) == params.max_new_tokens or tokens[-1] == END
            if tokens[-1] == END:
                num_complete += 1
                assert all(_has(answer, phrase) for phrase in params.required_phrases)
            own = own_log_probability(table, source, (), tokens)
            assert hypothesis.log_probability == pytest.approx(own, abs=1e-4)
            assert hypothesis.score == pytest.approx(own / len(tokens), abs=1e-4)
    assert num_complete > len(requests) / 2


def _after(required: RequiredPhrases, *tokens: int) -> PhraseState:
    state = required.start
    for token in tokens:
        state = required.advance(state, token)
    return state


def _numbers(required: RequiredPhrases, tokens: Tokens) -> list[int]:
    return [_after(required, *tokens[:length]).num_met for length in range(len(tokens) + 1)]


def test_tokens_of_complete_groups_count_beside_those_of_the_longest_begun_phrase() -> None:
    required = RequiredPhrases(((1, 2, 3), (4, 5)))
    assert required.num_tokens == 5
    assert _numbers(required, (1, 2, 4, 5, 1, 2, 3)) == [0, 1, 2, 1, 2, 3, 4, 5]
    assert _after(required, 4, 5).wanted == {1}


def test_a_phrase_waits_for_the_next_token_which_may_continue_its_word() -> None:
    words = WordTokens(frozenset((5, 6)), frozenset((6,)))
    term, phrase = RequiredPhrases((), (((1,),),), words), RequiredPhrases(((1,),), (), words)
    for required in (term, phrase):
        assert _after(required, 1).is_met
        assert _after(required, 1).is_unconfirmed
        assert not _after(required, 1, 5).is_met  # another word
        assert _after(required, 1, 4).is_met
        assert not _after(required, 1, 4).is_unconfirmed
        assert _after(required, 1, 4, 5).is_met  # confirmed for good
        assert _after(required, 1, 4).wanted == frozenset()
    assert _after(term, 1, 6, 6).is_met  # inflected
    assert not _after(term, 1, 6, 5).is_met
    assert not _after(phrase, 1, 6).is_met
    assert [term.continues_word(token) for token in (4, 5, 6)] == [False, True, True]


@pytest.mark.parametrize(
    ("beam_size", "num_candidates", "expected"),
    [
        (6, [10, 10, 10], [2, 2, 2]),
        (8, [10, 10, 10], [2, 2, 4]),
        (4, [10, 0, 0, 0, 0, 0], [4, 0, 0, 0, 0, 0]),
        (4, [10, 3, 0, 1, 0, 0], [0, 3, 0, 1, 0, 0]),
        (6, [1, 10, 0], [1, 5, 0]),
        (4, [1, 1, 1], [1, 1, 1]),
        (3, [0, 0], [0, 0]),
    ],
)
def test_beams_are_distributed_over_banks_that_can_use_them(
    beam_size: int, num_candidates: list[int], expected: list[int]
) -> None:
    assert bank_sizes(beam_size, num_candidates) == expected
