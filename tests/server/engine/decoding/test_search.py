from math import isnan, nan

import numpy as np
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


def test_the_score_has_the_precision_of_the_log_probability() -> None:
    total = np.float32(-1.1)
    single = end_hypothesis([5, 6, END], total, 0.6, 9, FREE).score
    double = end_hypothesis([5, 6, END], float(total), 0.6, 9, FREE).score
    assert single == float(np.float32(total / np.float32(3) ** np.float32(0.6)))
    assert double == float(total) / 3**0.6
    assert single != double


def test_a_hypothesis_without_a_score_has_nan() -> None:
    hypothesis = end_hypothesis([5, END], nan, 1.0, 9, FREE)
    assert isnan(hypothesis.log_probability)
    assert isnan(hypothesis.score)
