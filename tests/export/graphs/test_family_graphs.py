"""The exported graphs of models with the choices of each family."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from bundle import tensors as names
from bundle.tensors import Precision
from export.exporter import export_decoder, export_encoder
from export.graphs.layers import describe_shapes
from model.transformer import Transformer
from tests.export.graph_runs import OnnxGraphs, Rows, assert_equal_to_the_model, decode_together, random_tokens
from tests.model.random_models import small_model

LENGTHS = (1, 2, 3, 5, 8, 13, 24, 1, 4)
# One model for each family's choices; heads, layers and widths are odd on purpose.
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
    },
    "BART": {
        "positions": "learned",
        "position_offset": 2,
        "embedding_norm": True,
        "scale_embedding": False,
        "activation": "gelu",
        "output_bias": True,
    },
    "M2M100": {
        "sinusoid_layout": "halves_inclusive",
        "position_offset": 2,
        "norm_placement": "pre",
        "final_norm": True,
        "num_decoder_layers": 1,
    },
    "Firefox": {
        "decoder": "ssru",
        "sinusoid_layout": "halves_inclusive",
        "layer_norm_epsilon": 1e-6,
        "output_bias": True,
    },
}


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


@pytest.mark.parametrize("family", COMBINATIONS)
def test_the_exported_graphs_equal_a_model_of_each_family(
    family: str, exported: Callable[[str, Precision], Exported]
) -> None:
    found = exported(family, "float32")
    assert_equal_to_the_model(found.graphs, found.transformer)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("family", ["T5", "Firefox"])
def test_a_row_of_a_model_of_another_family_gets_the_same_bits_alone_and_batched(
    family: str, precision: Precision, exported: Callable[[str, Precision], Exported]
) -> None:
    graphs = exported(family, precision).graphs
    shapes, random = describe_shapes(exported(family, precision).transformer.config), np.random.default_rng(3)
    sources = [random_tokens(random, shapes.vocab_size, length) for length in LENGTHS]
    targets = [random_tokens(random, shapes.target_vocab_size, 18) for _ in LENGTHS]
    company = Rows(graphs, shapes, sources)
    together = decode_together(company, targets, 8)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        single = Rows(graphs, shapes, [source])
        assert np.array_equal(single.cross[:, 0], company.cross[:, row, :, : len(source)])
        for alone, among in zip(decode_together(single, [target], 8), together, strict=True):
            assert np.array_equal(alone.logits[0], among.logits[row])
            assert np.array_equal(alone.tokens[0], among.tokens[row])
