import pytest

from server.text.items.kinds import ItemKind
from server.text.protection.means import (
    BEAMS_FOR_NEGATIONS,
    Means,
    NegationMeans,
    first_means,
    next_means,
    next_negation_means,
)


@pytest.mark.parametrize(
    ("kind", "ladder"),
    [
        (ItemKind.NUMBER, [Means.AS_IS, Means.STAND_IN, Means.NAME, Means.REQUIRED, Means.APART, Means.APART]),
        (ItemKind.MARKUP, [Means.NAME, Means.REQUIRED, Means.APART, Means.APART]),
        (ItemKind.WORD, [Means.NAME, Means.REQUIRED, Means.APART]),
        (ItemKind.SIGN, [Means.AS_IS, Means.PLACED, Means.PLACED]),
    ],
)
def test_each_means_is_followed_by_the_next_stronger_one(kind: ItemKind, ladder: list[Means]) -> None:
    found = [first_means(kind)]
    while len(found) < len(ladder):
        found.append(next_means(kind, found[-1]))
    assert found == ladder


def test_kinds_that_a_model_never_copies_begin_further_up() -> None:
    assert first_means(ItemKind.URL, (ItemKind.URL,)) is Means.NAME
    assert first_means(ItemKind.URL, (ItemKind.EMAIL,)) is Means.AS_IS
    assert first_means(ItemKind.SYMBOL, (ItemKind.SYMBOL,)) is Means.PLACED


def test_negations_get_more_beams_then_a_required_word_then_any_answer() -> None:
    few, enough = BEAMS_FOR_NEGATIONS - 1, BEAMS_FOR_NEGATIONS
    assert next_negation_means(NegationMeans.HYPOTHESES, few) is NegationMeans.BEAMS
    assert next_negation_means(NegationMeans.HYPOTHESES, enough) is NegationMeans.REQUIRED
    assert next_negation_means(NegationMeans.BEAMS, few) is NegationMeans.REQUIRED
    assert next_negation_means(NegationMeans.REQUIRED, enough) is NegationMeans.ANY_ANSWER
    assert next_negation_means(NegationMeans.ANY_ANSWER, enough) is NegationMeans.ANY_ANSWER
