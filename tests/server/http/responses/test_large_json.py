import asyncio
import json
import math

import numpy as np
import pytest
from pydantic import BaseModel

from server.http.protocols.native.fields import SentenceAnswer
from server.http.responses.large_json import json_off_loop, json_pieces


class _Item(BaseModel):
    name: str
    weights: list[list[float]] | None = None


class _Answer(BaseModel):
    items: list[_Item]
    best: _Item | None = None
    empty: list[_Item] = []
    note: str | None = None


ANSWER = _Answer(items=[_Item(name='Größe "1"\n'), _Item(name="", weights=[[0.1, -1e-300], []])], best=_Item(name="x"))


def test_the_json_is_that_of_pydantic_without_null_fields() -> None:
    written = b"".join(json_pieces(ANSWER.model_copy(deep=True)))
    assert json.loads(written) == ANSWER.model_dump(mode="json", exclude_none=True)
    assert written.decode() == ANSWER.model_dump_json(exclude_none=True)
    assert asyncio.run(json_off_loop(lambda: ANSWER.model_copy(deep=True))) == written
    assert b"".join(json_pieces(_Answer(items=[]))) == b'{"items":[],"empty":[]}'


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (3, 2)])
def test_weights_stay_an_array_until_each_row_is_written(shape: tuple[int, int]) -> None:
    weights = np.linspace(0, 1, math.prod(shape), dtype=np.float32).reshape(shape)
    answer = SentenceAnswer(
        source_tokens=["a"], target_tokens=["b"], token_scores=None, alignment=None, attention=weights
    )
    assert answer.attention is weights
    assert b"".join(json_pieces(answer)).decode() == answer.model_dump_json(exclude_none=True)
    assert json.loads(answer.model_dump_json())["attention"] == weights.tolist()
