"""Export of a model to the graphs of layout `parts`."""

from pathlib import Path

import torch
from torch.export import Dim

from bundle import tensors as names
from export.graphs.parts_layout import DecoderPart, EncoderPart, add_candidates, choose_graph, move_graph, rank_graph
from export.graphs.residual_range import within_float16
from export.graphs.shapes import describe_shapes
from export.graphs.tracing import EXAMPLE_ROWS, EXAMPLE_SOURCE_LEN, example_caches, save, traced
from model.transformer import Transformer


def export_parts(transformer: Transformer, folder: Path, dtype: torch.dtype) -> None:
    """Write all five graphs: float16 for GPUs, float32 for comparisons on a CPU.

    Weights are prepared in float32 and rounded once. Layer normalisation, softmax and sums of products are float32
    inside ONNX Runtime's operators; values between operators are `dtype`.
    """
    config, shapes = transformer.config, describe_shapes(transformer.config)
    num_layers, num_suppressed = config.num_decoder_layers, len(config.suppressed_token_ids)
    recurrent = config.has_recurrent_decoder
    rounded = within_float16(transformer)  # a copy: the bundle is verified against the unrounded model
    rows = Dim("rows", min=1, max=2**16)
    source_len = Dim("source_len", min=1, max=config.max_source_tokens)
    encoder, encoder_weights = traced(
        EncoderPart(rounded).eval().to(dtype),
        (
            torch.zeros(EXAMPLE_ROWS, EXAMPLE_SOURCE_LEN, dtype=torch.int32),
            torch.tensor([EXAMPLE_SOURCE_LEN, 3, 1], dtype=torch.int32),
            torch.tensor(EXAMPLE_SOURCE_LEN, dtype=torch.int32),
        ),
        ({0: rows, 1: source_len}, {0: rows}, {}),
        [names.SOURCE_TOKENS, names.SOURCE_LENGTHS, names.SOURCE_WIDTH],
        [names.CROSS_KEYS_VALUES, names.HIDDEN_STATES],
    )
    save(encoder, folder / names.ENCODER_FILE, shapes, encoder_weights)
    rounded = within_float16(transformer)  # float32 again
    # Caches have their full length, so that no node reads their shape.
    caches = example_caches(transformer, EXAMPLE_ROWS, shapes.max_target_tokens, shapes.max_source_tokens, dtype)
    decoder, decoder_weights = traced(
        DecoderPart(rounded).eval().to(dtype),
        (
            torch.zeros(EXAMPLE_ROWS, dtype=torch.int32),
            torch.zeros(EXAMPLE_ROWS, dtype=torch.int32),
            torch.ones(EXAMPLE_ROWS, dtype=torch.int32),
            caches,
        ),
        ({0: rows}, {0: rows}, {0: rows}, [tuple({0: rows} for _ in layer) for layer in caches]),
        list(names.decoder_input_names(num_layers, "parts", recurrent=recurrent)),
        # Candidates are added below.
        list(names.decoder_output_names(num_layers, "parts", recurrent=recurrent, has_suppressed=bool(num_suppressed)))[
            2:
        ],
    )
    add_candidates(decoder, shapes, num_suppressed)
    save(decoder, folder / names.DECODER_FILE, shapes, decoder_weights)
    save(choose_graph(shapes, num_suppressed), folder / names.CHOOSE_FILE, shapes)
    save(rank_graph(shapes, dtype, num_suppressed), folder / names.RANK_FILE, shapes)
    save(move_graph(shapes), folder / names.MOVE_FILE, shapes)
