import pytest

from server.engine.decoding.search import SearchLimits, end_hypothesis
from server.interface.request import FinishReason

END = 0
FREE, FORCED = (SearchLimits(4, 16, END, forced_end=forced) for forced in (False, True))


@pytest.mark.parametrize(
    ("limits", "tokens", "has_looped", "reason"),
    [
        (FREE, [5, 6, END], False, FinishReason.STOP),
        (FREE, [5, 6, 7, END], False, FinishReason.STOP),
        (FREE, [5, 6, 7, 8], False, FinishReason.LENGTH),
        (FREE, [5, 5, 5], True, FinishReason.REPETITION),
        (FORCED, [5, 6, END], False, FinishReason.STOP),
        (FORCED, [5, 6, 7, END], False, FinishReason.LENGTH),
        (FORCED, [], False, FinishReason.LENGTH),
    ],
)
def test_a_hypothesis_has_the_reason_of_its_last_token_and_its_limit(
    limits: SearchLimits, tokens: list[int], has_looped: bool, reason: FinishReason
) -> None:
    hypothesis = end_hypothesis(tokens, -1.0, 1.0, 4, limits, has_looped=has_looped)
    assert hypothesis.finish_reason is reason
    assert hypothesis.token_ids == [token for token in tokens if token != END]


def test_the_score_is_normalised_by_all_tokens_and_includes_the_bonus() -> None:
    hypothesis = end_hypothesis([5, 6, 7, END], -8.0, 0.5, 9, FREE, bonus=lambda tokens: -float(len(tokens)))
    assert (hypothesis.log_probability, hypothesis.score) == (-8.0, -8.0 / 2 - 4)
