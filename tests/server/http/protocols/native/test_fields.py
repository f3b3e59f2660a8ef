import math
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from server.http.protocols.native.fields import BoundedBody, SentenceAnswer, Texts, finite
from server.translation.types import SentenceDetails, TokenScore


class _Body(BoundedBody):
    text: Texts = ()
    items: list[object] = Field(default_factory=list)
    terms: dict[str, Any] = Field(default_factory=dict)


def _errors(body: type[BaseModel], fields: dict[str, object]) -> list[tuple[int | str, ...]]:
    """Return the place of each error."""
    try:
        body.model_validate(fields)
    except ValidationError as error:
        return [each["loc"] for each in error.errors()]
    return []


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [
        ({f"f{number}": 1 for number in range(201)}, False),
        ({"items": [1] * 2001}, False),
        ({"items": ["a", [1] * 2001]}, False),
        ({"text": ["a", 1] + [1] * 2000}, False),
        ({"text": None}, False),
        ({"terms": {"a": ["b"] * 2001}}, False),
        ({"terms": {"a": ["b", 1]}}, False),
    ],
)
def test_lists_and_mappings_are_bounded_before_their_items_are_validated(
    fields: dict[str, object], is_valid: bool
) -> None:
    assert len(_errors(_Body, fields)) == (not is_valid), "one error, however many items are wrong"


def test_scores_that_json_does_not_have_are_left_out() -> None:
    assert [finite(score) for score in (-1.5, 0.0, math.nan, -math.inf)] == [-1.5, 0, None, None]
    alternatives = [[TokenScore("a", -1.0), TokenScore("b", -math.inf)], []]
    answer = SentenceAnswer.model_validate(SentenceDetails(["x"], ["a"], [-1.0, -math.inf], alternatives, [0], None))
    assert answer.token_scores == [-1, None]
    assert answer.token_alternatives is not None
    assert [[each.token for each in best] for best in answer.token_alternatives] == [["a"], []]
    assert (answer.alignment, answer.attention) == ([0], None)
    nothing = SentenceAnswer.model_validate(SentenceDetails(["x"], ["a"], None, None, None, None))
    assert nothing.model_dump(exclude_none=True) == {"source_tokens": ["x"], "target_tokens": ["a"]}
