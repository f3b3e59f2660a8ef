import numpy as np
import pytest

from bundle.loading import Bundle
from bundle.manifest import BundleConfig
from server.interface.errors import TextTooLong
from server.translation.source_length import SourceLength


def _config(bundle: Bundle, **tokenizer: object) -> BundleConfig:
    shapes = bundle.config.shapes.model_copy(update={"max_source_tokens": 5})
    described = bundle.config.tokenizer.model_copy(update=tokenizer)
    return bundle.config.model_copy(update={"shapes": shapes, "tokenizer": described})


def _fitted(config: BundleConfig, length: int) -> list[int]:
    return list(map(int, SourceLength(config).fitted(0, np.arange(length, dtype=np.int32), truncate=True)))


@pytest.mark.parametrize(
    ("tokenizer", "kept"),
    [
        ({"after": None}, [0, 1, 2, 3, 7]),  # the end of the sequence
        ({"after": ()}, [0, 1, 2, 3, 4]),
        ({"after": (1, 2)}, [0, 1, 2, 6, 7]),
        ({"source_language_last": True, "source_language_tokens": {"en": 9}}, [0, 1, 2, 6, 7]),
        ({"source_language_last": False, "source_language_tokens": {"en": 9}}, [0, 1, 2, 3, 7]),
        ({"source_language_last": True, "source_language_tokens": {}}, [0, 1, 2, 3, 7]),
    ],
)
def test_a_long_source_loses_what_stands_before_its_control_tokens(
    echo_bundle: Bundle, tokenizer: dict[str, object], kept: list[int]
) -> None:
    config = _config(echo_bundle, **tokenizer)
    assert _fitted(config, 8) == kept
    assert _fitted(config, 5) == [0, 1, 2, 3, 4]


def test_a_long_source_is_rejected_unless_it_may_be_cut(echo_bundle: Bundle) -> None:
    length = SourceLength(_config(echo_bundle))
    source = np.arange(6, dtype=np.int32)
    assert length.fitted(3, source[:5], truncate=False) is not None
    with pytest.raises(TextTooLong, match=r"text 3 must have at most 5 tokens with this model. Given: 6"):
        length.fitted(3, source, truncate=False)
