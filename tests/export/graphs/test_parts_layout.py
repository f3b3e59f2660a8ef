"""Layout `parts`: the same numbers as the model's, and nothing in the graphs for a CPU to do."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from numpy.typing import NDArray
from onnx import numpy_helper

from bundle import tensors as names
from bundle.loading import Bundle
from bundle.manifest import Shapes
from bundle.tensors import Precision
from export.exporter import describe_bundle
from export.graphs.parts_layout import add_candidates, choose_graph, export_parts, move_graph, rank_graph
from export.graphs.ranking import BlockedVocabulary
from export.graphs.tracing import save
from export.verification.verify import VerificationError, verify_bundle
from model.checkpoints.checkpoint import Checkpoint, Languages, Provenance, TokenizerFiles
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from model.transformer import Transformer
from tests.model.random_models import small_model

SHAPES = Shapes(
    vocab_size=100,
    target_vocab_size=100,
    d_model=8,
    num_encoder_layers=1,
    num_decoder_layers=2,
    num_heads=3,
    head_dim=8,
    max_source_tokens=5,
    max_target_tokens=6,
)


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint and its model."""

    checkpoint: Checkpoint
    model: Transformer


@pytest.fixture(scope="module")
def source(checkpoint: Path) -> Source:
    read = read_checkpoint(checkpoint)
    return Source(read, build_model(read))


@pytest.fixture(scope="module", params=["float32", "float16"])
def parts(request: pytest.FixtureRequest, source: Source, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    if request.param == "float16":
        exported: Bundle = request.getfixturevalue("float16_bundle")
        return exported
    folder = tmp_path_factory.mktemp("parts")
    export_parts(source.model, folder, torch.float32)
    return Bundle(folder, describe_bundle(source.checkpoint, folder, "float32", "parts", 1))


def _session(model: onnx.ModelProto) -> ort.InferenceSession:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_all_outputs_are_those_of_the_model(parts: Bundle, source: Source) -> None:
    assert len(verify_bundle(parts, source.model)) > 20
    assert all(parameter.dtype == torch.float32 for parameter in source.model.parameters())


def test_a_choice_of_the_wrong_token_is_noticed(parts: Bundle, source: Source, tmp_path: Path) -> None:
    bundle = Bundle(Path(shutil.copytree(parts.path, tmp_path, dirs_exist_ok=True)), parts.config)
    model = onnx.load(tmp_path / names.DECODER_FILE)
    for node in model.graph.node:
        if node.op_type == "TopK":
            node.attribute.append(onnx.helper.make_attribute("largest", 0))
    save(model, tmp_path / names.DECODER_FILE, bundle.config.shapes)
    with pytest.raises(VerificationError, match="returns wrong tokens"):
        verify_bundle(bundle, source.model)


def test_no_graph_holds_what_cannot_be_captured(parts: Bundle) -> None:
    """A branch, or a shape that is worked out while running; the encoder, which is not captured, slices its table."""
    forbidden = {"If", "Loop", "Shape", "Size", "NonZero", "Range", "ConstantOfShape", "Expand", "Concat"}
    for file in (names.DECODER_FILE, names.CHOOSE_FILE, names.RANK_FILE, names.MOVE_FILE):
        operators = {node.op_type for node in onnx.load(parts.file(file)).graph.node}
        # The suppressed logits next to the normaliser: of a fixed number of columns.
        allowed = {"Concat"} if file == names.RANK_FILE else set()
        assert not (operators & forbidden) - allowed, file
    encoder = onnx.load(parts.file(names.ENCODER_FILE)).graph
    (shape,) = (node for node in encoder.node if node.op_type == "Shape")
    assert {node.op_type for node in encoder.node if set(node.input) & set(shape.output)} <= {"Slice"}


@pytest.mark.parametrize("num_suppressed", [0, 2])
def test_the_normalizer_counts_suppressed_tokens(num_suppressed: int) -> None:
    random = np.random.default_rng(3)
    session = _session(rank_graph(SHAPES, torch.float32, num_suppressed))
    logits = np.full((5, session.get_inputs()[0].shape[1]), -np.inf, np.float32)
    logits[:, :100] = random.normal(scale=9, size=(5, 100))
    suppressed = random.normal(scale=9, size=(5, num_suppressed)).astype(np.float32)
    tokens = np.argsort(-logits, axis=1)[:, : names.NUM_RANKED]
    given = {names.STEP_LOGITS: logits, names.CANDIDATE_TOKENS: tokens}
    (normalizer,) = session.run(None, given | ({names.SUPPRESSED_LOGITS: suppressed} if num_suppressed else {}))
    expected = np.log(np.exp(np.hstack([logits, suppressed]).astype(np.float64)).sum(axis=1))
    np.testing.assert_allclose(normalizer, expected, rtol=1e-5)


def _projection(hidden: NDArray[np.floating], rows: NDArray[np.floating]) -> onnx.ModelProto:
    """A decoder that is nothing but its output projection, with candidates."""
    element_type = onnx.helper.np_dtype_to_tensor_dtype(hidden.dtype)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gemm", ["hidden", "weight", "bias"], [names.STEP_LOGITS], transB=1)],
        "projection",
        [value("hidden", element_type, ["rows", hidden.shape[1]])],
        [value(names.STEP_LOGITS, element_type, ["rows", rows.shape[0]])],
        [numpy_helper.from_array(rows, "weight"), numpy_helper.from_array(np.zeros_like(rows[:, 0]), "bias")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    return add_candidates(model, SHAPES, num_suppressed=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_candidates_are_ranked_by_sums_in_float32(dtype: type[np.floating]) -> None:
    random = np.random.default_rng(5)
    padded = BlockedVocabulary.of(100).num_blocks * BlockedVocabulary.of(100).block_size
    hidden = random.normal(size=(6, 64)).astype(dtype)
    rows = random.normal(size=(padded, 64)).astype(dtype)
    # Tokens that float16 can hardly tell apart.
    rows[1:8] = rows[0] + random.normal(scale=1e-3, size=(7, 64)).astype(dtype)
    rows[100:] = -1e4 * np.sign(hidden[0])  # what fills up the vocabulary, as far as the first row is concerned
    _, logits, tokens = _session(_projection(hidden[:1], rows)).run(None, {"hidden": hidden[:1]})
    exact = hidden[:1].astype(np.float64) @ rows[:100].astype(np.float64).T
    expected = np.argsort(-exact, axis=1)[:, : names.NUM_RANKED - 2]
    np.testing.assert_array_equal(tokens[:, : names.NUM_RANKED - 2], expected)  # the last ones may have missed the cut
    np.testing.assert_allclose(logits[:, :-2], np.take_along_axis(exact, expected, axis=1), rtol=1e-5, atol=1e-5)


def test_the_next_step_begins_with_the_best_token_and_no_row_outgrows_its_cache() -> None:
    session = _session(choose_graph(SHAPES, num_suppressed=0))
    tokens = np.arange(3 * names.NUM_RANKED).reshape(3, names.NUM_RANKED)
    lengths = np.array([0, 4, 5], np.int32)
    chosen, longer = session.run(None, {names.CANDIDATE_TOKENS: tokens, names.PAST_LENGTHS: lengths})
    assert chosen.tolist() == [0, 16, 32]
    assert longer.tolist() == [1, 5, 5]


def test_moves_take_the_named_positions_of_all_heads_and_planes_and_nothing_else() -> None:
    random = np.random.default_rng(4)
    words, heads, planes = 2, SHAPES.num_heads, 2 * SHAPES.num_decoder_layers
    source = random.integers(1 << 60, size=(planes, 4, heads, 5, words))
    target = random.integers(1 << 60, size=(planes, 7, heads, 6, words))
    # The second move is named twice, as those are that fill up a bucket.
    moves = {"from_rows": [3, 0, 0], "to_rows": [1, 6, 6]}
    positions = {"from_positions": [[0, 1, 2], [4, 4, 4], [4, 4, 4]], "to_positions": [[0, 1, 2], [0, 0, 0], [0, 0, 0]]}
    lengths = {"from_length": [5], "to_length": [6]}
    numbers = {name: np.array(value, np.int64) for name, value in (moves | positions | lengths).items()}
    for plane in range(planes):
        numbers[f"from_{plane}"] = source[plane].reshape(-1, words)
        numbers[f"to_{plane}"] = target[plane].reshape(-1, words)
    moved = np.stack(_session(move_graph(SHAPES)).run(None, numbers)).reshape(target.shape)
    expected = target.copy()
    expected[:, 1, :, :3] = source[:, 3, :, :3]
    expected[:, 6, :, 0] = source[:, 0, :, 4]
    np.testing.assert_array_equal(moved, expected)


T5 = {
    "positions": "none",
    "relative_buckets": 8,
    "relative_max_distance": 6,
    "norm": "rms",
    "norm_placement": "pre",
    "final_norm": True,
    "gated": True,
    "biases": False,
    "attention_scale": 1.0,
    "scale_embedding": False,
}


def _bundle(transformer: Transformer, folder: Path, precision: Precision) -> Bundle:
    parameters = dict(transformer.named_parameters())
    checkpoint = Checkpoint(
        transformer.config,
        parameters,
        TokenizerFiles("bytes", {}),
        Languages(("en",), ("de",)),
        Provenance("tiny", "t5", "0" * 64),
    )
    return Bundle(folder, describe_bundle(checkpoint, folder, precision, "tiny", 0))


def test_a_feed_forward_beyond_the_range_of_float16_is_exported_in_float16(tmp_path: Path) -> None:
    transformer = small_model(T5 | {"vocab_size": 32, "num_encoder_layers": 1, "num_decoder_layers": 1})
    assert BlockedVocabulary.of(32).num_blocks * BlockedVocabulary.of(32).block_size == 32  # blocks without padding
    with torch.no_grad():
        (feed_forward,) = (layer.feed_forward for layer in list(transformer.encoder.layers)[:1])
        feed_forward.outer_proj.weight *= 1e5
        written = feed_forward(torch.ones(1, 1, 12))
    assert written.abs().max() > torch.finfo(torch.float16).max
    export_parts(transformer, tmp_path, torch.float16)
    assert verify_bundle(_bundle(transformer, tmp_path, "float16"), transformer)
