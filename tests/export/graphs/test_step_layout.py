"""The modules that graphs are exported from, in eager mode, against the model."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bundle import tensors as names
from bundle.loading import Bundle
from bundle.tensors import Precision
from export.exporter import export_decoder, export_encoder
from export.graphs.layers import describe_shapes
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from model.layers import DecoderLayer
from model.transformer import Transformer
from server.engine.decoding.token_recorder import attention_weights
from tests.export.graph_runs import (
    EagerGraphs,
    OnnxGraphs,
    Rows,
    assert_equal_to_the_model,
    decode_together,
    random_tokens,
)
from tests.model.random_models import Options, small_model

VARIANTS: dict[str, Options] = {
    "the small default": {},
    "one suppressed token": {"suppressed_token_ids": (0,)},
    "several suppressed tokens": {"suppressed_token_ids": (0, 5, 7)},
    "pre-norm with a final norm": {"norm_placement": "pre", "final_norm": True},
    "post-norm with a final norm": {"norm_placement": "post", "final_norm": True},
    "learned positions with an offset": {"positions": "learned", "position_offset": 2},
    "positions in halves": {"sinusoid_layout": "halves", "position_offset": 2},
    "other decoder heads": {"num_heads": 3, "decoder_num_heads": 2},
    "heads wider than the model": {"head_dim": 7},
    "heads of eight, which need no zeros": {"d_model": 24, "num_heads": 3},
    "an untied output with a bias": {"tie_output": False, "output_bias": True, "suppressed_token_ids": (3,)},
    "two vocabularies": {"tie_embeddings": False, "target_vocab_size": 23},
    "unscaled embeddings": {"scale_embedding": False},
    "gelu": {"activation": "gelu"},
    "silu": {"activation": "silu"},
    "relative positions only": {"positions": "none", "relative_buckets": 8, "relative_max_distance": 6},
    "relative positions and sinusoids": {"relative_buckets": 4, "relative_max_distance": 3, "decoder_num_heads": 2},
    "RMS norms before each sub-layer": {"norm": "rms", "norm_placement": "pre", "final_norm": True},
    "RMS norms after each sub-layer": {"norm": "rms"},
    "a gated feed-forward without biases": {"gated": True, "biases": False, "activation": "gelu_tanh"},
    "a gated feed-forward with ReLU": {"gated": True},
    "unscaled attention": {"attention_scale": 1.0, "output_scale": 0.4},
    "a norm of embeddings": {"embedding_norm": True, "sinusoid_layout": "halves_inclusive"},
    "one layer and three": {"num_encoder_layers": 1, "num_decoder_layers": 3},
}
# Sources of very different scale, lengths from one to the most there may be.
LENGTHS = (1, 2, 3, 5, 5, 8, 13, 24, 1, 4)
LOUD, QUIET = 5, 6
# Every export compares its graphs with the model, also of tests with checkpoints of each family; these have choices and
# odd sizes that no checkpoint has.
COMBINATIONS: dict[str, dict[str, object]] = {
    "T5": {
        "positions": "none",
        "relative_buckets": 8,
        "relative_max_distance": 6,
        "norm": "rms",
        "norm_placement": "pre",
        "final_norm": True,
        "gated": True,
        "biases": False,
        "activation": "gelu_tanh",
        "attention_scale": 1.0,
        "output_scale": 0.4,
        "scale_embedding": False,
        "decoder_num_heads": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    },
    "unlike Marian": {
        "norm_placement": "pre",
        "final_norm": True,
        "positions": "learned",
        "position_offset": 2,
        "d_model": 20,
        "num_heads": 2,
        "decoder_num_heads": 5,
        "num_encoder_layers": 1,
        "tie_embeddings": False,
        "target_vocab_size": 23,
        "tie_output": False,
        "output_bias": False,
        "activation": "gelu",
        "suppressed_token_ids": (0, 5),
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_graphs_in_eager_mode_equal_the_model(variant: str) -> None:
    transformer = small_model(VARIANTS[variant])
    assert_equal_to_the_model(EagerGraphs(transformer), transformer)


@pytest.fixture(scope="module")
def marian(checkpoint: Path) -> Transformer:
    return build_model(read_checkpoint(checkpoint))


@dataclass(frozen=True, slots=True)
class Exported:
    """A model and its graphs."""

    transformer: Transformer
    graphs: OnnxGraphs


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Precision], Exported]:
    """Return the model of a family and its graphs, which are exported once."""

    @cache
    def export(family: str, precision: Precision) -> Exported:
        folder = tmp_path_factory.mktemp("family")
        transformer = small_model(COMBINATIONS[family] | {"max_source_tokens": 24, "max_target_tokens": 20})
        encoder, decoder = folder / names.ENCODER_FILE, folder / names.DECODER_FILE
        export_encoder(transformer, encoder, precision)
        export_decoder(transformer, decoder, precision)
        return Exported(transformer, OnnxGraphs(encoder, decoder))

    return export


def _graphs(bundle: Bundle) -> OnnxGraphs:
    return OnnxGraphs(bundle.file(names.ENCODER_FILE), bundle.file(names.DECODER_FILE))


def test_the_exported_graphs_equal_the_model(marian: Transformer, float32_bundle: Bundle) -> None:
    assert_equal_to_the_model(_graphs(float32_bundle), marian)


@pytest.mark.parametrize("lengths", [(1,), (24,), (1,) * 70, tuple(range(1, 25))], ids=str)
def test_any_number_of_rows_and_any_lengths_run(
    marian: Transformer, float32_bundle: Bundle, lengths: tuple[int, ...]
) -> None:
    shapes, random = float32_bundle.config.shapes, np.random.default_rng(2)
    sources = [random_tokens(random, shapes.vocab_size, length) for length in lengths]
    targets = [random_tokens(random, shapes.target_vocab_size, shapes.max_target_tokens) for _ in sources]
    by_onnx = decode_together(Rows(_graphs(float32_bundle), shapes, sources), targets, 5)
    by_torch = decode_together(Rows(EagerGraphs(marian), shapes, sources), targets, 5)
    assert len(by_onnx) == shapes.max_target_tokens
    for found, expected in zip(by_onnx, by_torch, strict=True):
        np.testing.assert_allclose(found.logits, expected.logits, atol=2e-5)
        np.testing.assert_allclose(found.log_normalizer, expected.log_normalizer, atol=2e-5)


def test_suppressed_tokens_are_no_candidates_but_count_in_the_normalizer(
    exported: Callable[[str, Precision], Exported],
) -> None:
    found = exported("unlike Marian", "float32")
    config = found.transformer.config
    shapes, suppressed = describe_shapes(config), config.suppressed_token_ids
    rows = Rows(found.graphs, shapes, [[1, 2, 3], [4]])
    num_allowed = shapes.target_vocab_size - len(suppressed)
    step = rows.step([2, 2], num_allowed)
    for tokens in step.tokens:
        assert set(tokens) == set(range(shapes.target_vocab_size)) - set(suppressed)
    assert np.isfinite(step.logits).all()
    allowed = np.exp(step.logits - step.log_normalizer[:, None]).sum(axis=1)
    assert (allowed < 0.999).all()


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_step_without_scores_has_the_same_candidates_and_no_normalizer(
    precision: str, request: pytest.FixtureRequest
) -> None:
    bundle: Bundle = request.getfixturevalue(f"{precision}_bundle")
    rows = Rows(_graphs(bundle), bundle.config.shapes, [[1, 2, 3], [4]])
    with_scores, without = rows.step([2, 3], 5), rows.step([2, 3], 5, with_scores=False)
    assert np.array_equal(without.tokens, with_scores.tokens)
    assert np.array_equal(without.logits, with_scores.logits)
    assert np.isfinite(with_scores.log_normalizer).all()
    assert np.isnan(without.log_normalizer).all()


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("family", ["Marian", "T5"])
def test_a_row_gets_the_same_bits_alone_and_in_company(
    family: str, precision: Precision, exported: Callable[[str, Precision], Exported], request: pytest.FixtureRequest
) -> None:
    if family == "Marian":
        bundle: Bundle = request.getfixturevalue(f"{precision}_bundle")
        graphs, shapes = _graphs(bundle), bundle.config.shapes
    else:
        model = exported(family, precision)
        graphs, shapes = model.graphs, describe_shapes(model.transformer.config)
    random = np.random.default_rng(3)
    sources = [random_tokens(random, shapes.vocab_size, length) for length in LENGTHS]
    targets = [random_tokens(random, shapes.target_vocab_size, 12) for _ in LENGTHS]
    company = Rows(graphs, shapes, sources)
    together = decode_together(company, targets, 8)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        single = Rows(graphs, shapes, [source])
        assert np.array_equal(single.cross[:, 0], company.cross[:, row, :, : len(source)])
        for alone, among in zip(decode_together(single, [target], 8), together, strict=True):
            assert np.array_equal(alone.tokens[0], among.tokens[row])
            assert np.array_equal(alone.logits[0], among.logits[row])
            assert alone.log_normalizer[0] == among.log_normalizer[row]


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_row_gets_the_same_bits_in_every_place_of_a_batch_of_any_size(
    precision: str, request: pytest.FixtureRequest
) -> None:
    # Vectorised kernels treat the last few numbers of an array in another way than the others.
    bundle: Bundle = request.getfixturevalue(f"{precision}_bundle")
    shapes, graphs, random = bundle.config.shapes, _graphs(bundle), np.random.default_rng(4)
    sources = [random_tokens(random, shapes.vocab_size, length) for length in random.integers(1, 12, 37)]
    found: dict[tuple[int, int], tuple[bytes, ...]] = {}
    for num_rows in (37, 36, 33, 17, 16, 9, 8, 7, 5, 4, 3, 2, 1):
        for shift in (0, 5):
            members = [(row + shift) % 37 for row in range(num_rows)]
            rows = Rows(graphs, shapes, [sources[member] for member in members])
            for first in range(0, shapes.target_vocab_size, 3):
                step = rows.step([first] * num_rows, 8)
                for place, member in enumerate(members):
                    outputs = (step.logits[place], step.tokens[place], step.log_normalizer[place])
                    bits = tuple(output.tobytes() for output in outputs)
                    assert found.setdefault((member, first), bits) == bits, f"place {place} of {num_rows}"


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_loud_neighbour_does_not_change_a_bit_of_a_quiet_row(precision: str, tmp_path: Path) -> None:
    # Pre-norm, so that what is loud at the input still is when cross-attention keys are made of it.
    transformer = small_model({"norm_placement": "pre", "d_model": 16, "num_heads": 2, "num_encoder_layers": 1})
    embedding = transformer.encoder.embedding.weight.data
    embedding[LOUD] *= 1e4
    embedding[QUIET] *= 1e-4
    file = tmp_path / names.ENCODER_FILE
    export_encoder(transformer, file, "int8" if precision == "int8" else "float32")
    graphs = OnnxGraphs(file, file)
    quiet = [QUIET, QUIET, 3]

    def keys_values(*sources: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return graphs.encode(
            {
                names.SOURCE_TOKENS: np.array(sources, np.int32),
                names.SOURCE_LENGTHS: np.full(len(sources), 3, np.int32),
            }
        )

    loud = keys_values([LOUD, LOUD, LOUD], quiet, [LOUD, 3, LOUD])
    assert np.abs(loud[:, 0]).max() > 100 * np.abs(loud[:, 1]).max()
    assert np.array_equal(keys_values(quiet)[:, 0], loud[:, 1])


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_logits_of_named_rows_are_those_the_candidates_come_from_bit_for_bit(
    precision: str, request: pytest.FixtureRequest
) -> None:
    bundle: Bundle = request.getfixturevalue(f"{precision}_bundle")
    rows = Rows(_graphs(bundle), bundle.config.shapes, [[1, 2, 3], [4], [5, 6]])
    num_allowed = bundle.config.shapes.target_vocab_size - len(bundle.config.special_tokens.suppressed)
    without, some = rows.step([2, 3, 4], num_allowed), rows.step([2, 3, 4], num_allowed, logit_rows=[2, 0, 0])
    assert without.logits_of_rows.shape == (0, bundle.config.shapes.target_vocab_size)
    assert np.array_equal(without.logits, some.logits)
    assert np.array_equal(without.log_normalizer, some.log_normalizer)
    for row, logits in zip([2, 0, 0], some.logits_of_rows, strict=True):
        assert np.array_equal(logits[some.tokens[row]], some.logits[row])
        assert np.isneginf(logits[list(bundle.config.special_tokens.suppressed)]).all()


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("int8", 0.05)])
def test_queries_and_cached_keys_give_the_attention_of_the_model(
    precision: str, tolerance: float, marian: Transformer, request: pytest.FixtureRequest
) -> None:
    bundle: Bundle = request.getfixturevalue(f"{precision}_bundle")
    sources = [[1, 2, 3, 9], [4, 5]]
    rows = Rows(_graphs(bundle), bundle.config.shapes, sources)
    step = rows.step([7, 8], 1)
    keys_step = np.float32(names.INT8_CACHE_STEP if precision == "int8" else 1)
    for layer, queries in enumerate(step.cross_queries):
        for row, (source, token) in enumerate(zip(sources, [7, 8], strict=True)):
            keys = rows.cross[2 * layer, row, :, : len(source)].astype(np.float32) * keys_step
            [found] = attention_weights(queries[row], keys, bundle.config.attention_scale)
            np.testing.assert_allclose(found, _attention_of_the_model(marian, layer, source, token), atol=tolerance)


def _attention_of_the_model(marian: Transformer, layer: int, source: list[int], token: int) -> NDArray[np.float32]:
    """Cross-attention's probabilities [heads, source_len] of the first step; its dropout sees them pass."""
    seen: list[torch.Tensor] = []
    decoder_layer = marian.decoder.layers[layer]
    assert isinstance(decoder_layer, DecoderLayer)
    hook = decoder_layer.cross_attention.dropout.register_forward_hook(lambda _, __, output: seen.append(output))
    try:
        tokens = torch.tensor([source])
        with torch.no_grad():
            marian(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.tensor([[token]]))
    finally:
        hook.remove()
    return seen[0][0, :, 0].numpy()


@pytest.mark.parametrize("family", COMBINATIONS)
def test_the_exported_graphs_equal_a_model_of_each_family(
    family: str, exported: Callable[[str, Precision], Exported]
) -> None:
    found = exported(family, "float32")
    assert_equal_to_the_model(found.graphs, found.transformer)
