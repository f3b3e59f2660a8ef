"""The operators of domain `kvasir` in int8 graphs, each a function of ONNX Runtime's own operators.

Where the library of `kernels` is loaded its native operators are run instead, in one pass over memory each; where it is
not, ONNX Runtime puts the functions' bodies in their place. Either way one graph file serves.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from kernels.layout import PANEL_COLUMNS, QUAD

DOMAIN = "kvasir"
VERSION = 1
OPSET = 21
_MICROSOFT = "com.microsoft"

LINEAR = "Linear"
LINEAR_OF_SOME = "LinearOfSome"
LINEAR_RELU = "LinearRelu"
LINEAR_ADD = "LinearAdd"
LINEAR_ADD_NORMALIZATION = "LinearAddNormalization"
SELF_ATTENTION = "SelfAttention"
CROSS_ATTENTION = "CrossAttention"
SOURCE_ATTENTION = "SourceAttention"
BEST_TOKENS = "BestTokens"


@dataclass(frozen=True, slots=True)
class Ranking:
    """What `BestTokens` knows of the tokens: `bias` and `mask` [tokens, filled up to whole blocks].

    `weight` names the output projection; `mask` is minus infinity for tokens that must not be generated.
    """

    weight: str
    bias: NDArray[np.float32]
    mask: NDArray[np.float32]
    block_size: int
    num_tokens: int


def in_panels(weight: NDArray[np.int8]) -> NDArray[np.int8]:
    """A matrix [inputs, outputs] as [ceil(outputs / 64), inputs / 4, 64, 4], which is the order it is read in.

    Four numbers of a column side by side are what one instruction multiplies; zeros fill up the last panel. `inputs`
    must be a multiple of four.
    """
    inputs, outputs = weight.shape
    num_panels = -(-outputs // PANEL_COLUMNS)
    filled = np.zeros((inputs, num_panels * PANEL_COLUMNS), np.int8)
    filled[:, :outputs] = weight
    quads = filled.reshape(inputs // QUAD, QUAD, num_panels, PANEL_COLUMNS)
    return np.ascontiguousarray(quads.transpose(2, 0, 3, 1))


def add_functions(model: ModelProto) -> None:
    """Define every operator of the domain that the model's graph uses. Changed in place."""
    used = {node.op_type for node in model.graph.node if node.domain == DOMAIN}
    if BEST_TOKENS in used:
        used.add(LINEAR)
    model.functions.extend(make() for name, make in _FUNCTIONS.items() if name in used)
    known = {opset.domain for opset in model.opset_import}
    for domain, version in ((DOMAIN, VERSION), (_MICROSOFT, 1)):
        if domain not in known:
            model.opset_import.append(helper.make_opsetid(domain, version))


class _Body:
    """The nodes of a function, one after the other."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []

    def add(
        self,
        operator: str,
        inputs: Iterable[str],
        outputs: str | list[str],
        references: Iterable[tuple[str, AttributeProto.AttributeType]] = (),
        domain: str | None = None,
        **attributes: float | str | list[int] | TensorProto | GraphProto,
    ) -> None:
        """A node; `references` are attributes whose value is that of the function's attribute of the same name."""
        names = [outputs] if isinstance(outputs, str) else outputs
        node = helper.make_node(operator, list(inputs), names, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        for name, kind in references:
            node.attribute.append(_reference(name, name, kind))
        self.nodes.append(node)

    def constant(self, name: str, value: list[int]) -> None:
        """A constant vector of int64."""
        self.add("Constant", [], name, value=helper.make_tensor(name, TensorProto.INT64, [len(value)], value))

    def attribute(self, name: str, kind: AttributeProto.AttributeType, output: str) -> None:
        """The function's attribute of this name as a scalar."""
        field = "value_int" if kind == AttributeProto.INT else "value_float"
        node = helper.make_node("Constant", [], [output])
        node.attribute.append(_reference(field, name, kind))
        self.nodes.append(node)

    def function(self, name: str, inputs: list[str], outputs: list[str], attributes: list[str]) -> FunctionProto:
        """All of it."""
        opsets = [helper.make_opsetid(*version) for version in (("", OPSET), (_MICROSOFT, 1), (DOMAIN, VERSION))]
        return helper.make_function(DOMAIN, name, inputs, outputs, self.nodes, opsets, attributes)

    def branch(self, name: str, output: str) -> GraphProto:
        """All of it, as a branch that gives float32 [rows]."""
        value = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["rows"])
        return helper.make_graph(self.nodes, name, [], [value])


def _reference(name: str, refers_to: str, kind: AttributeProto.AttributeType) -> AttributeProto:
    attribute = AttributeProto()
    attribute.name, attribute.ref_attr_name, attribute.type = name, refers_to, kind
    return attribute


def _linear(
    name: str, *, relu: bool = False, residual: bool = False, normalization: bool = False, may_be_empty: bool = False
) -> FunctionProto:
    """`hidden` [.., inputs] times an int8 matrix, plus `bias`; then a ReLU, a residual, a normalisation as named.

    A row's activations get a scale from their own largest magnitude, and so depend on no other row. `zero_point` is 0
    for activations that are never negative, and `levels` what the largest becomes: 255, or 127 with zero point 128.
    `sums` of the weight's columns are for the native operator. Where `hidden` [rows, inputs] may have no rows at all,
    the functions must know.
    """
    body = _Body()
    body.constant("last_axis", [-1])
    body.constant("flat", [-1])
    body.constant("first_column", [0])
    body.constant("column_axis", [1])
    body.attribute("levels", AttributeProto.FLOAT, "levels")
    body.attribute("zero_point", AttributeProto.INT, "zero_point_int")
    body.add("Cast", ["zero_point_int"], "zero_point", to=TensorProto.UINT8)
    body.add("Abs", ["hidden"], "magnitudes")
    body.add("ReduceMax", ["magnitudes", "last_axis"], "found_largest", keepdims=1)
    if may_be_empty:
        # Of [0, inputs] ONNX Runtime's ReduceMax makes [0, inputs]. Zero means: as many as there are.
        body.constant("one_a_row", [0, 1])
        body.add("Reshape", ["found_largest", "one_a_row"], "largest")
    else:
        body.add("Identity", ["found_largest"], "largest")
    # A row of zeros divides 0 by 0 here, and whatever comes of that is multiplied by its row scale, 0, below.
    body.add("Div", ["largest", "levels"], "row_scale")
    body.add("Reshape", ["row_scale", "flat"], "row_scales")
    body.add("Shape", ["row_scales"], "num_rows")
    body.add("Expand", ["zero_point", "num_rows"], "zero_points")
    body.add("QuantizeLinear", ["hidden", "row_scales", "zero_points"], "quantized", axis=0)
    # Computed once, when the graph is loaded: the weight as a matrix.
    body.add("Transpose", ["weight"], "quads", perm=[1, 3, 0, 2])
    body.add("Flatten", ["quads"], "filled", axis=2)
    body.add("Shape", ["scales"], "num_columns")
    body.add("Slice", ["filled", "first_column", "num_columns", "column_axis"], "matrix")
    body.add("Constant", [], "one", value_float=1.0)
    factors = ["quantized", "matrix", "one", "scales", "zero_point"]
    body.add("MatMulIntegerToFloat", factors, "unscaled", domain=_MICROSOFT)
    body.add("Mul", ["unscaled", "row_scale"], "scaled")
    steps = ["scaled"]

    def then(operator: str, *others: str, epsilon: bool = False) -> None:
        references = [("epsilon", AttributeProto.FLOAT)] if epsilon else []
        steps.append(operator.lower())
        body.add(operator, [steps[-2], *others], steps[-1], references)

    inputs = ["hidden", "weight", "scales", "sums", "bias"]
    attributes = ["zero_point", "levels"]
    then("Add", "bias")
    if relu:
        then("Relu")
    if residual:
        inputs.append("residual")
        body.add("Add", ["residual", steps[-1]], "added")
        steps.append("added")
    if normalization:
        inputs += ["norm_weight", "norm_bias"]
        attributes.append("epsilon")
        then("LayerNormalization", "norm_weight", "norm_bias", epsilon=True)
    body.add("Identity", [steps[-1]], "output")
    return body.function(name, inputs, ["output"], attributes)


def _cached_attention(name: str, new: list[str]) -> FunctionProto:
    """Attention of one token for each row over its int8 cache, where `new` keys and values are put at `positions`.

    Tensors are shaped as GroupQueryAttention takes them; `step` is what the cache's numbers are multiplied by.
    """
    body = _Body()
    body.add("Shape", ["keys"], "cache_len", start=2, end=3)
    body.add("Squeeze", ["cache_len"], "cache_len_scalar")
    body.add("Cast", ["cache_len_scalar"], "total", to=TensorProto.INT32)
    body.attribute("step", AttributeProto.FLOAT, "step")
    body.constant("flat", [1])
    body.add("Reshape", ["step", "flat"], "steps")
    fused = [*new, "", ""][:3]
    body.add(
        "GroupQueryAttention",
        [*fused, "keys", "values", "positions", "total", *[""] * 5, "steps", "steps"],
        ["output", "present_keys", "present_values"],
        [("num_heads", AttributeProto.INT), ("kv_num_heads", AttributeProto.INT), ("scale", AttributeProto.FLOAT)],
        _MICROSOFT,
        k_quant_type="PER_TENSOR",
        v_quant_type="PER_TENSOR",
        kv_cache_bit_width=8,
    )
    outputs = ["output", "present_keys", "present_values"]
    attributes = ["num_heads", "kv_num_heads", "scale", "step"]
    return body.function(name, [*new, "keys", "values", "positions"], outputs, attributes)


def _source_attention() -> FunctionProto:
    """Bidirectional attention over ragged rows, `fused` [rows, source_len, 3 * width] up to `last_positions` [rows]."""
    body = _Body()
    body.add("Shape", ["fused"], "source_len", start=1, end=2)
    body.add("Squeeze", ["source_len"], "source_len_scalar")
    body.add("Cast", ["source_len_scalar"], "total", to=TensorProto.INT32)
    body.add(
        "GroupQueryAttention",
        ["fused", "", "", "", "", "last_positions", "total"],
        ["output"],
        [("num_heads", AttributeProto.INT), ("kv_num_heads", AttributeProto.INT), ("scale", AttributeProto.FLOAT)],
        _MICROSOFT,
        causal=0,
    )
    attributes = ["num_heads", "kv_num_heads", "scale"]
    return body.function(SOURCE_ATTENTION, ["fused", "last_positions"], ["output"], attributes)


def _best_tokens() -> FunctionProto:
    """The best `num_candidates` [1] tokens of `hidden` [rows, inputs] under an output projection, and normalisers.

    Logits are those of `Linear`; `mask` [outputs], 0 or minus infinity, is added to them before they are ranked. The
    logarithm of the sum of the exponentials of all logits [rows] is NaN unless `with_scores` [1].

    TopK over a whole vocabulary is slow. Here it sees the largest logits of blocks of `block_size` neighbours, and then
    the blocks with the largest ones: the best tokens can lie nowhere else.
    """
    body = _Body()
    body.attribute("block_size", AttributeProto.INT, "block_size")
    body.attribute("last_token", AttributeProto.INT, "last_token")
    for name, value in (("first", 0), ("last_axis", -1), ("behind_first", 1)):
        body.constant(name, [value])
    factors = ["hidden", "weight", "scales", "sums", "bias"]
    references = [("zero_point", AttributeProto.INT), ("levels", AttributeProto.FLOAT)]
    body.add(LINEAR, factors, "logits", references, DOMAIN)
    body.add("Add", ["logits", "mask"], "ranked")
    body.constant("rows_and_blocks", [0, -1])
    body.add("Reshape", ["block_size", "last_axis"], "block_size_vector")
    body.add("Concat", ["rows_and_blocks", "block_size_vector"], "in_blocks", axis=0)
    body.add("Reshape", ["ranked", "in_blocks"], "blocks")
    body.add("ReduceMax", ["blocks", "last_axis"], "largest", keepdims=0)
    body.add("Shape", ["largest"], "num_blocks", start=1, end=2)
    body.add("Min", ["num_candidates", "num_blocks"], "num_best_blocks")
    body.add("TopK", ["largest", "num_best_blocks"], ["best_of_blocks", "best_blocks"])
    body.add("Unsqueeze", ["best_blocks", "last_axis"], "block_indices")
    body.add("GatherND", ["blocks", "block_indices"], "chosen_blocks", batch_dims=1)
    body.add("Reshape", ["chosen_blocks", "rows_and_blocks"], "chosen")
    body.add("TopK", ["chosen", "num_candidates"], ["candidate_logits", "places"])
    body.add("Div", ["places", "block_size"], "ranks")
    body.add("GatherElements", ["best_blocks", "ranks"], "found_blocks", axis=1)
    body.add("Mul", ["found_blocks", "block_size"], "block_starts")
    body.add("Mod", ["places", "block_size"], "in_block")
    body.add("Add", ["block_starts", "in_block"], "found")
    # Of a row that is not numbers anything is found; it must at least be a token.
    body.add("Min", ["found", "last_token"], "tokens")
    body.add("Squeeze", ["with_scores"], "wanted")
    branches = {"then_branch": _normalizer(), "else_branch": _no_normalizer()}
    body.add("If", ["wanted"], "log_normalizer", **branches)
    inputs = [*factors, "mask", "num_candidates", "with_scores"]
    outputs = ["candidate_logits", "tokens", "log_normalizer"]
    return body.function(BEST_TOKENS, inputs, outputs, ["zero_point", "levels", "block_size", "last_token"])


def _normalizer() -> GraphProto:
    # The largest log-probability is the largest logit minus the log normaliser. ONNX Runtime's LogSoftmax is vectorised
    # and its ReduceLogSumExp several times slower.
    body = _Body()
    body.add("LogSoftmax", ["logits"], "log_probs", axis=-1)
    body.add("Slice", ["tokens", "first", "behind_first", "last_axis"], "best_token")
    body.add("Slice", ["candidate_logits", "first", "behind_first", "last_axis"], "best_logit")
    body.add("GatherElements", ["log_probs", "best_token"], "best_log_prob", axis=1)
    body.add("Sub", ["best_logit", "best_log_prob"], "normalizer_column")
    body.add("Squeeze", ["normalizer_column", "last_axis"], "normalizer")
    return body.branch("with_scores", "normalizer")


def _no_normalizer() -> GraphProto:
    body = _Body()
    body.add("Shape", ["candidate_logits"], "num_rows", start=0, end=1)
    nan = helper.make_tensor("value", TensorProto.FLOAT, [1], [float("nan")])
    body.add("ConstantOfShape", ["num_rows"], "nothing", value=nan)
    return body.branch("without_scores", "nothing")


_FUNCTIONS = {
    LINEAR: lambda: _linear(LINEAR),
    LINEAR_OF_SOME: lambda: _linear(LINEAR_OF_SOME, may_be_empty=True),
    LINEAR_RELU: lambda: _linear(LINEAR_RELU, relu=True),
    LINEAR_ADD: lambda: _linear(LINEAR_ADD, residual=True),
    LINEAR_ADD_NORMALIZATION: lambda: _linear(LINEAR_ADD_NORMALIZATION, residual=True, normalization=True),
    SELF_ATTENTION: lambda: _cached_attention(SELF_ATTENTION, ["fused"]),
    CROSS_ATTENTION: lambda: _cached_attention(CROSS_ATTENTION, ["query", "last_key", "last_value"]),
    SOURCE_ATTENTION: _source_attention,
    BEST_TOKENS: _best_tokens,
}
