"""The graphs of layout `parts`: no node runs on the CPU.

A run can be captured as a CUDA graph only if it is entirely on the device: no branches, no shapes computed at run time,
no value that the host reads. So a step ends with the logits of all rows, and small graphs without weights select from
them (`choose`, `rank`); `move` moves rows of caches.
"""

import copy
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper
from torch import Tensor, nn
from torch.export import Dim

from bundle import tensors as names
from bundle.manifest import Shapes
from export.graphs.layers import describe_shapes
from export.graphs.onnx_nodes import OPSET, FunctionBody
from export.graphs.ranking import BlockedVocabulary, add_best_tokens, add_log_normalizer
from export.graphs.step_layout import DecoderStepGraph, EncoderGraph, LayerCaches
from export.graphs.tracing import EXAMPLE_ROWS, EXAMPLE_SOURCE_LEN, example_caches, save, traced
from model.layers import RMSNorm
from model.transformer import Transformer

# Supported by onnx 1.21 and ONNX Runtime 1.31 for this operator set.
_IR_VERSION = 10
_SLICE_CONSTANTS = {
    name: np.array([value], np.int64) for name, value in (("first", 0), ("behind_first", 1), ("last_axis", -1))
}
# A power of two, so that no weight is rounded.
_DIVISOR = 64.0


class EncoderPart(EncoderGraph):
    """`EncoderGraph` with rows and positions as two axes, and the number of positions as an input (int32 scalar)."""

    def forward(  # type: ignore[override]  # one input and one output more
        self, source_tokens: Tensor, source_lengths: Tensor, source_width: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return cross-attention keys and values of every decoder layer, and hidden states."""
        hidden = self.embed(source_tokens)
        last_positions = source_lengths - 1
        position_bias = None if self.source_bias is None else self.source_bias(source_tokens.shape[1])
        for layer in self.layers:
            hidden = layer(hidden, last_positions, source_width, position_bias)
        if self.final_norm is not None:
            hidden = self.final_norm(hidden)
        return self._split(self.keys_values(hidden)).permute(2, 0, 3, 1, 4), hidden

    def _split(self, keys_values: Tensor) -> Tensor:
        sizes = (self.planes, self.heads.count, self.heads.padded_dim)
        if not torch.onnx.is_in_onnx_export():
            return keys_values.reshape(*keys_values.shape[:2], *sizes)
        # The exporter would compute the first two sizes on the CPU; 0 keeps them in ONNX.
        split: Tensor = torch.onnx.ops.symbolic(
            "Reshape",
            (keys_values, torch.tensor([0, 0, *sizes])),
            dtype=keys_values.dtype,
            shape=(*keys_values.shape[:2], *sizes),
        )
        return split


class DecoderPart(DecoderStepGraph):
    """`DecoderStepGraph` up to the logits of all rows [rows, padded vocab], in the precision of the graph."""

    def __init__(self, transformer: Transformer) -> None:
        super().__init__(transformer)
        # One row for each token, so that rows of candidates can be gathered.
        self.output_rows = nn.Parameter(self.output_weight.detach().T.contiguous())
        del self.output_weight

    def forward(  # type: ignore[override]  # fewer inputs
        self, previous_tokens: Tensor, past_lengths: Tensor, source_lengths: Tensor, caches: list[LayerCaches]
    ) -> tuple[Tensor, ...]:
        """Return logits, those of suppressed tokens if there are any, and caches and queries by layer."""
        hidden, present = self.decode(previous_tokens, past_lengths, source_lengths, caches)
        logits = torch.onnx.ops.symbolic(
            "Gemm",
            (hidden, self.output_rows, self.output_bias),
            attrs={"transB": 1},
            dtype=hidden.dtype,
            shape=(hidden.shape[0], self.output_rows.shape[0]),
        )
        suppressed = self.suppressed_logits(hidden)
        return (logits, *present) if suppressed is None else (logits, suppressed, *present)


def add_candidates(model: ModelProto, shapes: Shapes, num_suppressed: int) -> ModelProto:
    """Add the candidates to the decoder: the best by their logits, computed and ranked again in float32.

    float16 has 11 bits, so that many different logits are rounded to one. The model is changed in place.
    """
    graph = model.graph
    num_ranked = _num_ranked(shapes, num_suppressed)
    (projection,) = (node for node in graph.node if names.STEP_LOGITS in node.output)
    hidden, weight, *biases = projection.input  # the tracer omits a bias of zeros
    float32 = int(TensorProto.FLOAT)
    body = FunctionBody()
    tokens = _best(body, BlockedVocabulary.of(shapes.target_vocab_size), num_ranked)
    body.add("Gather", [weight, tokens], "candidate_rows", axis=0)  # [rows, ranked, d_model]
    body.add("Cast", ["candidate_rows"], "exact_rows", to=float32)
    body.add("Cast", [hidden], "exact_hidden", to=float32)
    body.add("Unsqueeze", ["exact_hidden", "within"], "hidden_column")
    body.add("MatMul", ["exact_rows", "hidden_column"], "exact_products")
    body.add("Squeeze", ["exact_products", "within"], "exact_sums")
    for bias in biases:
        body.add("Gather", [bias, tokens], "candidate_biases", axis=0)
        body.add("Cast", ["candidate_biases"], "exact_biases", to=float32)
        body.add("Add", ["exact_sums", "exact_biases"], "exact_logits")
    exact = "exact_logits" if biases else "exact_sums"
    body.add("TopK", [exact, "num_best"], [names.CANDIDATE_LOGITS, "order"], axis=-1)
    body.add("GatherElements", [tokens, "order"], names.CANDIDATE_TOKENS, axis=1)
    graph.node.extend(body.nodes)
    graph.output.extend(_candidates(num_ranked))
    return model


def choose_graph(shapes: Shapes, num_suppressed: int) -> ModelProto:
    """Return the graph that selects the best token of each row, and increments the row's length.

    Lengths are limited to the last position of the cache, to which unused rows continue to write.
    """
    body = FunctionBody()
    body.add("Slice", [names.CANDIDATE_TOKENS, "first", "behind_first", "last_axis"], "best_column")
    body.add("Squeeze", ["best_column", "last_axis"], "best")
    body.add("Cast", ["best"], names.NEXT_TOKENS, to=int(TensorProto.INT32))
    body.add("Add", [names.PAST_LENGTHS, "one_more"], "longer")
    body.add("Min", ["longer", "last_position"], names.NEXT_LENGTHS)
    constants = _SLICE_CONSTANTS | {
        "one_more": np.array([1], np.int32),
        "last_position": np.array([shapes.max_target_tokens - 1], np.int32),
    }
    _, tokens = _candidates(_num_ranked(shapes, num_suppressed))
    inputs = [tokens, _value(names.PAST_LENGTHS, TensorProto.INT32, "rows")]
    outputs = [_value(name, TensorProto.INT32, "rows") for name in (names.NEXT_TOKENS, names.NEXT_LENGTHS)]
    return _model("choose", body, inputs, outputs, constants)


def rank_graph(shapes: Shapes, dtype: torch.dtype, num_suppressed: int) -> ModelProto:
    """Return the graph of the log normalisers, in float32."""
    vocabulary = BlockedVocabulary.of(shapes.target_vocab_size)
    body = FunctionBody()
    body.add("Cast", [names.STEP_LOGITS], "all_logits", to=int(TensorProto.FLOAT))
    add_log_normalizer(body, "all_logits", names.CANDIDATE_TOKENS, None, "normalizer")
    _, tokens = _candidates(_num_ranked(shapes, num_suppressed))
    element_type = int(TensorProto.FLOAT16 if dtype == torch.float16 else TensorProto.FLOAT)
    inputs = [_value(names.STEP_LOGITS, element_type, "rows", vocabulary.num_blocks * vocabulary.block_size), tokens]
    if num_suppressed:
        inputs.append(_value(names.SUPPRESSED_LOGITS, TensorProto.FLOAT, "rows", num_suppressed))
        body.add("Concat", ["normalizer", names.SUPPRESSED_LOGITS], "both", axis=-1)
        # Again the first logit minus its log-probability.
        body.add("LogSoftmax", ["both"], "shares", axis=-1)
        body.add("Slice", ["shares", "first", "behind_first", "last_axis"], "first_share")
        body.add("Sub", ["normalizer", "first_share"], "with_suppressed")
    body.add("Squeeze", ["with_suppressed" if num_suppressed else "normalizer", "last_axis"], names.LOG_NORMALIZER)
    return _model("rank", body, inputs, [_value(names.LOG_NORMALIZER, TensorProto.FLOAT, "rows")], _SLICE_CONSTANTS)


def move_graph(shapes: Shapes) -> ModelProto:
    """Return the graph that copies positions of rows between planes, or within them, for all heads and planes.

    If each output is bound to the memory of its target, nothing else is written. A move can be repeated; no position is
    both read and written.
    """
    body = FunctionBody()
    for side in ("from", "to"):
        body.add("Mul", [f"{side}_rows", "num_heads"], f"{side}_first_heads")
        body.add("Unsqueeze", [f"{side}_first_heads", "one_axis"], f"{side}_column")
        body.add("Add", [f"{side}_column", "heads"], f"{side}_heads")  # [moves, heads]
        body.add("Mul", [f"{side}_heads", f"{side}_length"], f"{side}_first_places")
        body.add("Unsqueeze", [f"{side}_first_places", "two_axis"], f"{side}_starts")
        body.add("Unsqueeze", [f"{side}_positions", "one_axis"], f"{side}_offsets")
        body.add("Add", [f"{side}_starts", f"{side}_offsets"], f"{side}_places")  # [moves, heads, positions]
    body.add("Unsqueeze", ["to_places", "last_axis"], "targets")
    inputs: list[ValueInfoProto] = []
    outputs: list[ValueInfoProto] = []
    for side in ("from", "to"):
        inputs += [
            _value(names.MOVE_ROWS.format(side=side), TensorProto.INT64, "moves"),
            _value(names.MOVE_POSITIONS.format(side=side), TensorProto.INT64, "moves", "positions"),
            _value(names.MOVE_LENGTH.format(side=side), TensorProto.INT64, 1),
        ]
    for plane in range(2 * shapes.num_decoder_layers):
        source, target = (names.MOVE_PLANE.format(side=side, plane=plane) for side in ("from", "to"))
        moved = names.MOVED_PLANE.format(plane=plane)
        body.add("Gather", [source, "from_places"], f"read_{plane}", axis=0)
        body.add("ScatterND", [target, "targets", f"read_{plane}"], moved)
        inputs += [
            _value(source, TensorProto.INT64, "from_all", "words"),
            _value(target, TensorProto.INT64, "all", "words"),
        ]
        outputs.append(_value(moved, TensorProto.INT64, "all", "words"))
    constants = {
        "num_heads": np.array([shapes.num_heads], np.int64),
        "heads": np.arange(shapes.num_heads, dtype=np.int64),
        "one_axis": np.array([1], np.int64),
        "two_axis": np.array([2], np.int64),
        "last_axis": np.array([-1], np.int64),
    }
    return _model("move", body, inputs, outputs, constants)


def _num_ranked(shapes: Shapes, num_suppressed: int) -> int:
    return min(names.NUM_RANKED, shapes.target_vocab_size - num_suppressed)


def _candidates(num_ranked: int) -> tuple[ValueInfoProto, ValueInfoProto]:
    return (
        _value(names.CANDIDATE_LOGITS, TensorProto.FLOAT, "rows", num_ranked),
        _value(names.CANDIDATE_TOKENS, TensorProto.INT64, "rows", num_ranked),
    )


def _best(body: FunctionBody, vocabulary: BlockedVocabulary, num_best: int) -> str:
    """Add the nodes that find the best tokens (int64) [rows, num_best], and return the name of their output."""
    num_blocks, size = vocabulary.num_blocks, vocabulary.block_size
    num_chosen = min(num_best, num_blocks)
    body.constant("blocked", [0, num_blocks, size])
    body.constant("within", [2])
    body.constant("single", [1])
    body.constant("num_chosen", [num_chosen])
    body.constant("num_best", [num_best])
    body.constant("last_axis", [-1])
    body.constant("joined", [0, num_chosen * size])
    body.constant("size", [size])
    body.add("Reshape", [names.STEP_LOGITS, "blocked"], "blocks")
    # Not ReduceMax, which requires cuDNN on CUDA, unlike all other nodes here.
    body.add("TopK", ["blocks", "single"], ["largest_column", "largest_place"], axis=-1)
    body.add("Squeeze", ["largest_column", "within"], "largest")
    body.add("Constant", [], "last_token", value=numpy_helper.from_array(np.array(vocabulary.num_tokens - 1, np.int64)))
    add_best_tokens(body, "num_chosen", "num_best", "joined", "size", "best_logits")
    return "tokens"


def _value(name: str, element_type: int, *shape: int | str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def _model(
    name: str,
    body: FunctionBody,
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
    constants: Mapping[str, NDArray[np.integer]],
) -> ModelProto:
    tensors = [numpy_helper.from_array(value, constant) for constant, value in constants.items()]
    graph = helper.make_graph(body.nodes, name, inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION)


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


@torch.no_grad()
def within_float16(transformer: Transformer) -> Transformer:
    """Return a copy that computes the same with smaller hidden states, or an equal copy of a model unlike T5."""
    config, divided = transformer.config, copy.deepcopy(transformer)
    is_like_t5 = config.norm == "rms" and config.norm_placement == "pre" and config.final_norm
    if not is_like_t5 or config.has_recurrent_decoder or config.embedding_norm or config.positions != "none":
        return divided
    # The output projection must keep its weight.
    divided.output_projection.weight = nn.Parameter(divided.output_projection.weight.clone())
    stacks = (divided.encoder, divided.decoder)
    for embedding in {stack.embedding for stack in stacks}:
        embedding.weight.div_(_DIVISOR)
    for module in divided.modules():
        if isinstance(module, RMSNorm):
            module.eps /= _DIVISOR**2
    for layer in [*divided.encoder.layers, *divided.decoder.layers]:
        for name in ("self_attention.out_proj", "cross_attention.out_proj", "feed_forward.outer_proj"):
            part, _, projection = name.partition(".")
            if hasattr(layer, part):
                _divide(getattr(getattr(layer, part), projection))
    return divided


def _divide(projection: nn.Linear) -> None:
    projection.weight.div_(_DIVISOR)
    bias: torch.Tensor | None = projection.bias
    if bias is not None:
        bias.div_(_DIVISOR)
