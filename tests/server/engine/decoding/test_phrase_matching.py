from server.engine.decoding.constrained import PhraseState, RequiredPhrases
from server.interface.request import Tokens
from server.interface.word_tokens import WordTokens


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


def test_a_phrase_that_begins_inside_another_is_found() -> None:
    required = RequiredPhrases(((1, 1, 2),))
    assert _numbers(required, (1, 1, 1, 2)) == [0, 1, 2, 2, 3]
    assert _after(required, 1, 1, 1, 2).is_met


def test_alternatives_count_as_the_longest_of_them() -> None:
    required = RequiredPhrases((), (((1,), (2, 3, 4)),))
    assert required.num_tokens == 3
    assert _numbers(required, (2, 3, 1)) == [0, 1, 2, 3]
    assert required.start.wanted == {1, 2}
    assert _after(required, 2).wanted == {1, 3}


def test_equal_phrases_and_equal_alternatives_are_one() -> None:
    assert RequiredPhrases(((1, 2), (1, 2))).num_tokens == 2
    assert RequiredPhrases(((1,),), (((1,), (1,)),)).num_tokens == 1


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


def test_equal_states_are_one_object() -> None:
    required = RequiredPhrases(((1, 2),))
    assert _after(required, 7) is _after(required, 8, 9) is required.start
    assert _after(required, 1) is _after(required, 2, 1)
