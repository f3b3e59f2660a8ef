import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from bundle import tensors as names
from bundle.loading import Bundle
from export.verification.differences import TOLERANCE, Verdict
from export.verification.differences import difference as difference_of
from export.verification.verify import VerificationError, verify_bundle
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from model.transformer import Transformer
from tests.model.families.random_families import random_model
from tests.model.families.rounded_models import export_graphs


@pytest.fixture(scope="module")
def marian(checkpoint: Path) -> Transformer:
    return build_model(read_checkpoint(checkpoint))


Change = Callable[[NDArray[np.float32]], None] | Callable[[NDArray[np.int8]], None]
INT8_MATRICES = [
    (names.ENCODER_FILE, "layers.0.feed_forward.outer.weight"),
    (names.ENCODER_FILE, "keys_values.weight"),
    (names.DECODER_FILE, "layers.0.self_output.weight"),
    (names.DECODER_FILE, "output_weight"),
]


def _tampered(bundle: Bundle, folder: Path, file: str, name: str, change: Change) -> Bundle:
    """A copy of the bundle in which one constant is another."""
    shutil.copytree(bundle.path, folder)
    model = onnx.load(folder / file)
    (constant,) = [tensor for tensor in model.graph.initializer if tensor.name == name]
    value = numpy_helper.to_array(constant).copy()
    change(value)
    constant.CopyFrom(numpy_helper.from_array(value, constant.name))
    onnx.save(model, folder / file)
    return Bundle(folder, bundle.config)


def _refusal(bundle: Bundle, transformer: Transformer) -> str:
    with pytest.raises(VerificationError) as raised:
        verify_bundle(bundle, transformer)
    return str(raised.value)


def test_every_output_of_a_good_bundle_is_compared_and_accepted(float32_bundle: Bundle, marian: Transformer) -> None:
    differences = verify_bundle(float32_bundle, marian)
    compared = {difference.output for difference in differences}
    assert {"cross keys 0", "cross values 0", "logits of step 0", "log normalizer of step 3"} <= compared
    assert {"self_keys_0 of step 3", "self_values_0 of step 3"} <= compared
    assert {"logits of named rows of step 3", "cross_queries_0 of step 3"} <= compared
    assert max(difference.relative for difference in differences) < TOLERANCE["float32"] / 10


def test_a_model_that_enlarges_the_rounding_of_float32_is_accepted_with_a_warning_and_a_wrong_graph_is_not(
    tmp_path: Path,
) -> None:
    random_model("t5", 0, 0, tmp_path / "checkpoint")
    checkpoint = read_checkpoint(tmp_path / "checkpoint")
    sharp = {
        name: weight * (4 if "query" in name or "key" in name or "embedding" in name else 1)
        for name, weight in checkpoint.weights.items()
    }
    checkpoint = replace(checkpoint, weights=sharp)
    bundle, model = export_graphs(checkpoint, tmp_path / "bundle", "float32"), build_model(checkpoint)
    warnings: list[str] = []
    differences = verify_bundle(bundle, model, warnings.append)
    assert max(each.relative for each in differences) > TOLERANCE["float32"]
    assert any("rounding to float32 changes" in warning for warning in warnings)
    file, name = names.DECODER_FILE, "layers.0.self_output.weight"
    message = _refusal(_tampered(bundle, tmp_path / "b", file, name, _add_half(3)), model)
    assert "The graph is wrong" in message
    assert "--precision" not in message


def test_int8_is_accepted_and_is_where_rounding_takes_the_model(int8_bundle: Bundle, marian: Transformer) -> None:
    differences = verify_bundle(int8_bundle, marian)
    assert max(difference.relative for difference in differences) > 10 * TOLERANCE["float32"]
    assert {each.verdict for each in differences} <= {Verdict.USUAL, Verdict.UNLUCKY}
    # Twice of what rounding alone does is usual; in a model as small as this both are nearly the same.
    assert max(d.relative / d.allowed for d in differences if d.allowed > 0.03) < 0.6
    assert max(d.residual for d in differences) < 0.5


def _double_one_scale(scales: NDArray[np.float32]) -> None:
    scales[3] *= 2


def _all_a_fifth_larger(scales: NDArray[np.float32]) -> None:
    scales *= 1.2


def _forget_a_column(panels: NDArray[np.int8]) -> None:
    panels[0, :, 3] = 0


def _swap_two_rows(panels: NDArray[np.int8]) -> None:
    panels[:, 0, :, [0, 1]] = panels[:, 0, :, [1, 0]]


@pytest.mark.parametrize(
    ("matrix", "part", "change"),
    [
        *((matrix, "scales", _double_one_scale) for matrix in INT8_MATRICES),
        (INT8_MATRICES[0], "scales", _all_a_fifth_larger),
        (INT8_MATRICES[1], "panels", _forget_a_column),
        (INT8_MATRICES[2], "panels", _swap_two_rows),
        (INT8_MATRICES[3], "panels", _forget_a_column),
    ],
)
def test_a_broken_matrix_in_int8_is_noticed(
    int8_bundle: Bundle, marian: Transformer, tmp_path: Path, matrix: tuple[str, str], part: str, change: Change
) -> None:
    file, name = matrix
    _refusal(_tampered(int8_bundle, tmp_path / "b", file, f"{name}/{part}", change), marian)


def test_unlucky_rounding_is_accepted_with_a_warning_and_a_wrong_graph_is_not() -> None:
    random = np.random.default_rng(1)
    values = random.standard_normal((20, 50)).astype(np.float32)
    rounding = random.normal(0, 0.02, values.shape).astype(np.float32)
    rounded = values + rounding

    def verdict(found: NDArray[np.float32]) -> Verdict:
        return difference_of("x", found, values, "int8", [rounded]).verdict

    assert verdict(rounded) is Verdict.USUAL
    flipped = rounded.copy()
    flipped[3, 4] += 0.08  # a number half-way between two levels
    assert verdict(flipped) is not Verdict.WRONG
    # By a hair above twice the largest rounding error.
    hair = rounded.copy()
    hair[3, 4] = values[3, 4] + 2.02 * np.abs(rounding).max()
    assert verdict(hair) is Verdict.UNLUCKY
    other = values + random.normal(0, 0.02, values.shape).astype(np.float32)  # rounded elsewhere
    assert verdict(other) is Verdict.UNLUCKY
    assert verdict(rounded * np.float32(1.2)) is Verdict.WRONG
    assert verdict(rounded[:, ::-1]) is Verdict.WRONG
    column = rounded.copy()
    column[:, 7] *= 2
    assert verdict(column) is Verdict.WRONG
    assert verdict(np.full_like(rounded, np.nan)) is Verdict.WRONG


def test_a_graph_is_right_where_it_is_as_near_to_models_that_round_as_they_are_to_one_another() -> None:
    random = np.random.default_rng(1)
    values = random.standard_normal((5, 50)).astype(np.float32)

    def output(*, other_way: bool) -> NDArray[np.float32]:
        """One number, rounded up or down, changes all of one row."""
        rounded = values + random.normal(0, 0.02, values.shape).astype(np.float32)
        rounded[3] += 0.3 * other_way
        return rounded

    up, down = (output(other_way=way) for way in (True, False))
    both_ways = [output(other_way=way) for way in (False, True, True, False, False, False)]
    for found in (up, down):
        assert difference_of("x", found, values, "int8", both_ways).verdict is not Verdict.WRONG
    assert difference_of("x", up, values, "int8", both_ways[:1]).verdict is Verdict.WRONG
    # Other outputs of a graph can be the reason for more models: those never make an output wrong.
    near = down + np.float32(1e-3)
    assert difference_of("x", near, values, "int8", [down]).verdict is not Verdict.WRONG
    assert difference_of("x", near, values, "int8", [down] * 6).verdict is not Verdict.WRONG
    one_way = [output(other_way=False) for _ in range(6)]
    for wrong in (up, down * np.float32(1.2), np.full_like(down, np.nan)):
        assert difference_of("x", wrong, values, "int8", one_way).verdict is Verdict.WRONG


def _add_half(place: int) -> Change:
    # To one number, since a LayerNorm takes away what is added to all.
    def change(value: NDArray[np.float32]) -> None:
        value.flat[place] += 0.5

    return change


def _spoil(value: NDArray[np.float32]) -> None:
    value.flat[3] = np.nan


def _allow_suppressed(bias: NDArray[np.float32]) -> None:
    bias[np.isneginf(bias)] = 20.0


_FEED_FORWARD, _PROJECTION = "layers.0.feed_forward.outer.bias", "layers.0.self_queries_keys_values.bias"
_KEYS = 64  # the first number of the keys, which are behind the queries of four heads of 16


@pytest.mark.parametrize(
    ("file", "name", "change", "shown", "equal"),
    [
        (names.DECODER_FILE, _FEED_FORWARD, _add_half(3), "logits of step 0", ("cross", "self_keys_0 of step 0")),
        (names.ENCODER_FILE, _FEED_FORWARD, _add_half(3), "cross keys 0", ("self_keys",)),
        (names.DECODER_FILE, _PROJECTION, _add_half(_KEYS), "self_keys_0 of step 0", ()),
        (names.DECODER_FILE, "output_bias", _allow_suppressed, "logits of step 0", ()),
        (names.DECODER_FILE, _FEED_FORWARD, _spoil, "logits of step 0: nan", ()),
    ],
)
def test_a_changed_weight_is_noticed_where_it_shows(
    file: str,
    name: str,
    change: Change,
    shown: str,
    equal: tuple[str, ...],
    float32_bundle: Bundle,
    marian: Transformer,
    tmp_path: Path,
) -> None:
    message = _refusal(_tampered(float32_bundle, tmp_path / "b", file, name, change), marian)
    assert shown in message
    assert not [each for each in equal if each in message]
