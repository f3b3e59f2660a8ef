import json
import math
from pathlib import Path

import pytest

from bundle.loading import Bundle
from bundle.manifest import TARGET_VOCABULARY_FILE, VOCABULARY_FILE
from server.text.tokenizers.base import read_vocabularies
from server.text.tokenizers.word_tokens import cost_of_ranks
from tests.fakes.echo import make_bundle


def _write(bundle: Bundle, name: str, content: object) -> None:
    bundle.file(name).write_text(json.dumps(content), encoding="utf-8")


def test_both_sides_share_a_vocabulary_or_have_one_each(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path)
    size = bundle.config.shapes.vocab_size
    _write(bundle, VOCABULARY_FILE, {"a": 0, "b": size - 1})
    source, target = read_vocabularies(bundle)
    assert source is target
    assert source == {"a": 0, "b": size - 1}
    _write(bundle, TARGET_VOCABULARY_FILE, {"c": 1})
    assert read_vocabularies(bundle) == ({"a": 0, "b": size - 1}, {"c": 1})


@pytest.mark.parametrize("name", [VOCABULARY_FILE, TARGET_VOCABULARY_FILE])
@pytest.mark.parametrize("difference", [0, None])
def test_tokens_outside_the_vocabulary_are_rejected(tmp_path: Path, name: str, difference: int | None) -> None:
    bundle = make_bundle(tmp_path)
    size = bundle.config.shapes.vocab_size
    wrong = -1 if difference is None else size
    _write(bundle, name, {"a": 0, "b": wrong})
    with pytest.raises(ValueError, match=rf"tokens of {name} must be from 0 to {size - 1}. Given: {wrong}"):
        read_vocabularies(bundle)


@pytest.mark.parametrize("content", [[], {}, "a"])
def test_a_vocabulary_must_have_pieces(tmp_path: Path, content: object) -> None:
    bundle = make_bundle(tmp_path)
    _write(bundle, VOCABULARY_FILE, content)
    with pytest.raises(ValueError, match="must be a JSON object"):
        read_vocabularies(bundle)


def test_frequent_tokens_cost_less() -> None:
    assert cost_of_ranks([]) == 0
    assert cost_of_ranks([0, 90]) == pytest.approx(math.log(10) + math.log(100))
