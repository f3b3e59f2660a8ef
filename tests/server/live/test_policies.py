import pytest

from server.interface.errors import InvalidRequest
from server.live.policies import AlignAtt, Continuation, LocalAgreement, WaitK, policy_of


def _continuation(tokens: list[int], attended: list[int] | None = None, words: list[int] | None = None) -> Continuation:
    return Continuation(tuple(tokens), attended or [0] * len(tokens), words or list(range(1, len(tokens) + 1)))


@pytest.mark.parametrize(
    ("frame", "num_words", "expected"),
    [(1, 3, 1), (1, 4, 3), (0, 3, 3), (2, 3, 1), (3, 3, 0), (9, 3, 0)],
)
def test_alignatt_stops_before_the_first_token_that_attends_to_the_last_words(
    frame: int, num_words: int, expected: int
) -> None:
    now = _continuation([5, 6, 7, 8], attended=[0, 2, 1, 3])
    assert AlignAtt(frame).num_final(now, num_words, None) == expected


def test_local_agreement_commits_what_two_continuations_share() -> None:
    policy = LocalAgreement()
    assert policy.num_final(_continuation([1, 2, 3]), 3, None) == 0
    assert policy.num_final(_continuation([1, 2, 3]), 3, _continuation([1, 2])) == 2
    assert policy.num_final(_continuation([1, 2, 3]), 3, _continuation([9, 2, 3])) == 0


def test_wait_k_commits_a_word_for_each_word_after_the_first_ones() -> None:
    now = _continuation([1, 2, 3, 4], words=[1, 1, 2, 3])
    assert [WaitK(2).num_final(now, num_words, None) for num_words in range(1, 6)] == [0, 0, 2, 3, 4]


def test_an_unknown_policy_is_rejected_by_name() -> None:
    with pytest.raises(
        InvalidRequest, match=r"`policy` must be one of align-att, local-agreement, wait-k. Given: eager"
    ):
        policy_of("eager", 1)
