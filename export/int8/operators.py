"""The operators of the domain `kvasir` in int8 graphs, each a function of ONNX Runtime's own operators.

With the library of `kernels`, its native operators run, in one pass over memory each; without it, ONNX Runtime runs the
bodies of the functions. Both use the same graph file.
"""

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, TensorProto, helper

from export.graphs.onnx_nodes import DOMAIN, MICROSOFT, VERSION, FunctionBody
from export.graphs.ranking import add_best_tokens, add_log_normalizer
from kernels.layout import PANEL_COLUMNS, QUAD

EMBED_TOKENS = "EmbedTokens"
LINEAR = "Linear"
LINEAR_OF_SOME = "LinearOfSome"
LINEAR_RELU = "LinearRelu"
LINEAR_ADD = "LinearAdd"
LINEAR_ADD_NORMALIZATION = "LinearAddNormalization"
SELF_ATTENTION = "SelfAttention"
CROSS_ATTENTION = "CrossAttention"
SOURCE_ATTENTION = "SourceAttention"
BIASED_SELF_ATTENTION = "BiasedSelfAttention"
BIASED_SOURCE_ATTENTION = "BiasedSourceAttention"
BEST_TOKENS = "BestTokens"
BEST_LISTED_TOKENS = "BestListedTokens"
LISTED_LOGITS = "ListedLogits"
_LISTS = ["lists", "lengths", "list_of_row"]


def in_panels(weight: NDArray[np.int8], num_columns: int | None = None) -> NDArray[np.int8]:
    """Return a matrix [inputs, outputs] as [ceil(outputs / 64), ceil(inputs / 4), 64, 4], the order of reading.

    One instruction multiplies four adjacent numbers of a column; zeros pad the last quad, the last panel, and the
    matrix to `num_columns` outputs.
    """
    inputs, outputs = weight.shape
    num_quads, num_panels = -(-inputs // QUAD), -(-(num_columns or outputs) // PANEL_COLUMNS)
    panels = np.zeros((num_panels, num_quads, PANEL_COLUMNS, QUAD), np.int8)
    # One after another: a temporary copy of a panel, not of a vocabulary.
    for panel, start in zip(panels, range(0, outputs, PANEL_COLUMNS), strict=False):
        columns = weight[:, start : start + PANEL_COLUMNS]
        filled = np.zeros((num_quads * QUAD, PANEL_COLUMNS), np.int8)
        filled[:inputs, : columns.shape[1]] = columns
        panel[:] = filled.reshape(num_quads, QUAD, PANEL_COLUMNS).transpose(0, 2, 1)
    return panels


def add_functions(model: ModelProto) -> None:
    """Define every operator of the domain that the graph uses. The model is changed in place."""
    used = {node.op_type for node in model.graph.node if node.domain == DOMAIN}
    if BEST_LISTED_TOKENS in used:
        used.add(LISTED_LOGITS)
    if not used.isdisjoint({BEST_TOKENS, BEST_LISTED_TOKENS}):
        used.add(LINEAR)
    used -= {function.name for function in model.functions}
    model.functions.extend(make() for name, make in _FUNCTIONS.items() if name in used)
    known = {opset.domain for opset in model.opset_import}
    for domain, version in ((DOMAIN, VERSION), (MICROSOFT, 1)):
        if domain not in known:
            model.opset_import.append(helper.make_opsetid(domain, version))


def _linear(
    name: str, *, relu: bool = False, residual: bool = False, normalization: bool = False, may_be_empty: bool = False
) -> FunctionProto:
    """Return the function of `hidden` [.., inputs] times an int8 matrix plus `bias`, and of what follows it.

    The scale of a row is its largest magnitude, so the result does not depend on other rows. `zero_point` is 0 for
    activations that are never negative; `levels` is the quantised maximum: 255, or 127 with zero point 128. `sums` of
    the weight's columns are for the native operator. `may_be_empty` allows `hidden` [rows, inputs] without rows.
    """
    body = FunctionBody()
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
        # For [0, inputs] ONNX Runtime's ReduceMax returns [0, inputs]. In a shape, 0 keeps a size.
        body.constant("one_a_row", [0, 1])
        body.add("Reshape", ["found_largest", "one_a_row"], "largest")
    else:
        body.add("Identity", ["found_largest"], "largest")
    # A row of zeros divides 0 by 0 here; the result is multiplied by its row scale, 0, below.
    body.add("Div", ["largest", "levels"], "row_scale")
    body.add("Reshape", ["row_scale", "flat"], "row_scales")
    body.add("Shape", ["row_scales"], "num_rows")
    body.add("Expand", ["zero_point", "num_rows"], "zero_points")
    body.add("QuantizeLinear", ["hidden", "row_scales", "zero_points"], "quantized", axis=0)
    # The weight as a matrix; computed once, at load time.
    body.add("Transpose", ["weight"], "quads", perm=[1, 3, 0, 2])
    body.add("Flatten", ["quads"], "filled", axis=2)
    body.add("Shape", ["scales"], "num_columns")
    body.add("Slice", ["filled", "first_column", "num_columns", "column_axis"], "matrix")
    body.add("Constant", [], "one", value_float=1.0)
    factors = ["quantized", "matrix", "one", "scales", "zero_point"]
    body.add("MatMulIntegerToFloat", factors, "unscaled", domain=MICROSOFT)
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


def _embed_tokens() -> FunctionProto:
    """Return the function of the columns `tokens` [..] of an int8 matrix [width, tokens]: floats [.., width]."""
    body = FunctionBody()
    body.constant("first", [0])
    body.constant("last_axis", [-1])
    body.attribute("width", AttributeProto.INT, "width_scalar")
    body.add("Unsqueeze", ["width_scalar", "first"], "width_vector")
    # The columns as rows; computed once, at load time.
    body.add("Transpose", ["weight"], "by_column", perm=[0, 2, 1, 3])
    body.add("Flatten", ["by_column"], "padded", axis=2)
    body.add("Slice", ["padded", "first", "width_vector", "last_axis"], "rows")
    body.add("Gather", ["rows", "tokens"], "numbers")
    body.add("Cast", ["numbers"], "unscaled", to=TensorProto.FLOAT)
    body.add("Gather", ["scales", "tokens"], "token_scales")
    body.add("Unsqueeze", ["token_scales", "last_axis"], "factors")
    body.add("Mul", ["unscaled", "factors"], "output")
    return body.function(EMBED_TOKENS, ["tokens", "weight", "scales"], ["output"], ["width"])


def _cached_attention(name: str, new: list[str], *, biased: bool = False) -> FunctionProto:
    """Return the function of attention of one token of each row over its int8 cache.

    `new` keys and values are stored at `positions`. Shapes are those of GroupQueryAttention; `step` is the factor of
    the cached numbers. `biases` [heads, offsets] are those of the last keys up to the query's position.
    """
    body = FunctionBody()
    bias = "position_bias" if biased else ""
    body.add("Shape", ["keys"], "cache_len", start=2, end=3)
    body.add("Squeeze", ["cache_len"], "cache_len_scalar")
    body.add("Cast", ["cache_len_scalar"], "total", to=TensorProto.INT32)
    body.attribute("step", AttributeProto.FLOAT, "step")
    body.constant("flat", [1])
    body.add("Reshape", ["step", "flat"], "steps")
    fused = [*new, "", ""][:3]
    if biased:
        _add_step_bias(body)
    body.add(
        "GroupQueryAttention",
        [*fused, "keys", "values", "positions", "total", *[""] * 3, bias, "", "steps", "steps"],
        ["output", "present_keys", "present_values"],
        [("num_heads", AttributeProto.INT), ("kv_num_heads", AttributeProto.INT), ("scale", AttributeProto.FLOAT)],
        MICROSOFT,
        k_quant_type="PER_TENSOR",
        v_quant_type="PER_TENSOR",
        kv_cache_bit_width=8,
    )
    outputs = ["output", "present_keys", "present_values"]
    attributes = ["num_heads", "kv_num_heads", "scale", "step"]
    inputs = [*new, "keys", "values", "positions", *(["biases"] if biased else [])]
    return body.function(name, inputs, outputs, attributes)


def _add_step_bias(body: FunctionBody) -> None:
    """Add the nodes of `position_bias` [rows, heads, 1, cache_len] for keys up to `positions` in the cache."""
    for name, value in (("zero", 0), ("one", 1), ("two", 2)):
        body.constant(f"{name}_axis", [value])
    body.add("Squeeze", ["zero_axis"], "zero")
    body.add("Squeeze", ["one_axis"], "one")
    body.add("Range", ["zero", "cache_len_scalar", "one"], "keys_of_cache")
    body.add("Cast", ["positions"], "long_positions", to=TensorProto.INT64)
    body.add("Unsqueeze", ["long_positions", "one_axis"], "queries")
    body.add("Sub", ["keys_of_cache", "queries"], "offsets")
    body.add("Shape", ["biases"], "num_biases", start=1, end=2)
    body.add("Sub", ["num_biases", "one_axis"], "last_bias")
    body.add("Add", ["offsets", "last_bias"], "found_biases")
    # Keys after the query are invisible; any bias will do.
    body.add("Min", ["found_biases", "last_bias"], "first_biases")
    body.add("Max", ["first_biases", "zero_axis"], "bias_indices")
    body.add("Gather", ["biases", "bias_indices"], "by_head", axis=1)
    body.add("Transpose", ["by_head"], "by_row", perm=[1, 0, 2])
    body.add("Unsqueeze", ["by_row", "two_axis"], "position_bias")


def _add_source_bias(body: FunctionBody) -> None:
    """Add the nodes of `position_bias` [1, heads, source_len, source_len]."""
    for name, value in (("zero", 0), ("one", 1), ("two", 2)):
        body.constant(f"{name}_axis", [value])
    body.add("Squeeze", ["zero_axis"], "zero")
    body.add("Squeeze", ["one_axis"], "one")
    body.add("Range", ["zero", "source_len_scalar", "one"], "places")
    body.add("Unsqueeze", ["places", "one_axis"], "queries")
    body.add("Sub", ["places", "queries"], "offsets")
    body.add("Shape", ["biases"], "num_biases", start=1, end=2)
    body.add("Div", ["num_biases", "two_axis"], "middle_bias")
    body.add("Add", ["offsets", "middle_bias"], "bias_indices")
    body.add("Gather", ["biases", "bias_indices"], "by_head", axis=1)
    body.add("Unsqueeze", ["by_head", "zero_axis"], "position_bias")


def _source_attention(*, biased: bool = False) -> FunctionProto:
    """Return bidirectional attention over `fused` [rows, source_len, 3 * width] up to `last_positions` [rows].

    `biases` [heads, offsets] are added to the scores by the key's position minus the query's; the middle one is for 0.
    """
    body = FunctionBody()
    body.add("Shape", ["fused"], "source_len", start=1, end=2)
    body.add("Squeeze", ["source_len"], "source_len_scalar")
    body.add("Cast", ["source_len_scalar"], "total", to=TensorProto.INT32)
    if biased:
        _add_source_bias(body)
    body.add(
        "GroupQueryAttention",
        ["fused", "", "", "", "", "last_positions", "total", *(["", "", "", "position_bias"] if biased else [])],
        ["output"],
        [("num_heads", AttributeProto.INT), ("kv_num_heads", AttributeProto.INT), ("scale", AttributeProto.FLOAT)],
        MICROSOFT,
        causal=0,
    )
    attributes = ["num_heads", "kv_num_heads", "scale"]
    name = BIASED_SOURCE_ATTENTION if biased else SOURCE_ATTENTION
    return body.function(name, ["fused", "last_positions", *(["biases"] if biased else [])], ["output"], attributes)


def best_tokens(*, listed: bool = False) -> FunctionProto:
    """Return the function of the best `num_candidates` [1] tokens of `hidden` [rows, inputs] and the log normalisers.

    `Linear` computes the logits; `mask` [outputs], 0 or minus infinity, is added before they are ranked. The logarithm
    of the sum of the exponentials of all logits [rows] is NaN unless `with_scores` [1]. With `listed`, the logits of a
    row are those of its list.
    """
    body = FunctionBody()
    body.attribute("block_size", AttributeProto.INT, "block_size")
    body.attribute("last_token", AttributeProto.INT, "last_token")
    for name, value in (("first", 0), ("last_axis", -1), ("behind_first", 1)):
        body.constant(name, [value])
    factors = ["hidden", "weight", "scales", "sums", "bias"]
    references = [("zero_point", AttributeProto.INT), ("levels", AttributeProto.FLOAT)]
    if listed:
        body.add("Linear", factors, "all_logits", references, DOMAIN)
        body.add(LISTED_LOGITS, ["all_logits", *_LISTS], "logits", domain=DOMAIN)
    else:
        body.add("Linear", factors, "logits", references, DOMAIN)
    body.add("Add", ["logits", "mask"], "ranked")
    body.constant("rows_and_blocks", [0, -1])
    body.add("Reshape", ["block_size", "last_axis"], "block_size_vector")
    body.add("Concat", ["rows_and_blocks", "block_size_vector"], "in_blocks", axis=0)
    body.add("Reshape", ["ranked", "in_blocks"], "blocks")
    body.add("ReduceMax", ["blocks", "last_axis"], "largest", keepdims=0)
    body.add("Shape", ["largest"], "num_blocks", start=1, end=2)
    body.add("Min", ["num_candidates", "num_blocks"], "num_best_blocks")
    add_best_tokens(body, "num_best_blocks", "num_candidates", "rows_and_blocks", "block_size", "candidate_logits")
    body.add("Squeeze", ["with_scores"], "wanted")
    branches = {"then_branch": _normalizer(), "else_branch": _no_normalizer()}
    body.add("If", ["wanted"], "log_normalizer", **branches)
    inputs = [*factors, "mask", "num_candidates", "with_scores", *(_LISTS if listed else [])]
    outputs = ["candidate_logits", "tokens", "log_normalizer"]
    name = BEST_LISTED_TOKENS if listed else BEST_TOKENS
    return body.function(name, inputs, outputs, ["zero_point", "levels", "block_size", "last_token"])


def listed_logits() -> FunctionProto:
    """Return the function that makes the logits [rows, outputs] of tokens outside a row's list minus infinity.

    `lists` [lists, capacity] are valid up to their `lengths` [lists]; `list_of_row` [rows] is -1 for rows without one.
    """
    body = FunctionBody()
    for name, value in (("first", 0), ("one", 1), ("column_axis", 1)):
        body.constant(name, [value])
    body.add("Cast", ["list_of_row"], "long_list_of_row", to=TensorProto.INT64)
    body.add("Max", ["long_list_of_row", "first"], "chosen")
    body.add("Gather", ["lengths", "chosen"], "short_lengths")
    body.add("Cast", ["short_lengths"], "row_lengths", to=TensorProto.INT64)
    body.add("ReduceMax", ["row_lengths", "first"], "largest_length", keepdims=1)
    body.add("Max", ["largest_length", "one"], "longest")
    body.add("Slice", ["lists", "first", "longest", "column_axis"], "some_of_lists")
    body.add("Gather", ["some_of_lists", "chosen"], "short_tokens")
    body.add("Cast", ["short_tokens"], "all_tokens", to=TensorProto.INT64)
    # After its end a list repeats its first token.
    body.add("Squeeze", ["longest"], "longest_scalar")
    body.add("Squeeze", ["first"], "first_scalar")
    body.add("Squeeze", ["one"], "one_scalar")
    body.add("Range", ["first_scalar", "longest_scalar", "one_scalar"], "places")
    body.add("Unsqueeze", ["row_lengths", "column_axis"], "ends")
    body.add("Less", ["places", "ends"], "is_listed")
    body.add("Slice", ["all_tokens", "first", "one", "column_axis"], "first_tokens")
    body.add("Where", ["is_listed", "all_tokens", "first_tokens"], "tokens")
    body.add("Shape", ["logits"], "shape")
    nothing = helper.make_tensor("value", TensorProto.FLOAT, [1], [float("-inf")])
    body.add("ConstantOfShape", ["shape"], "nothing", value=nothing)
    body.add("Shape", ["tokens"], "list_shape")
    body.add("ConstantOfShape", ["list_shape"], "zeros")
    body.add("ScatterElements", ["nothing", "tokens", "zeros"], "mask", axis=1)
    body.add("Add", ["logits", "mask"], "restricted")
    body.add("Less", ["long_list_of_row", "first"], "has_no_list")
    body.add("Unsqueeze", ["has_no_list", "column_axis"], "is_whole")
    body.add("Where", ["is_whole", "logits", "restricted"], "output")
    return body.function(LISTED_LOGITS, ["logits", *_LISTS], ["output"], [])


def _normalizer() -> GraphProto:
    body = FunctionBody()
    add_log_normalizer(body, "logits", "tokens", "candidate_logits", "normalizer_column")
    body.add("Squeeze", ["normalizer_column", "last_axis"], "normalizer")
    return body.branch("with_scores", "normalizer")


def _no_normalizer() -> GraphProto:
    body = FunctionBody()
    body.add("Shape", ["candidate_logits"], "num_rows", start=0, end=1)
    nan = helper.make_tensor("value", TensorProto.FLOAT, [1], [float("nan")])
    body.add("ConstantOfShape", ["num_rows"], "nothing", value=nan)
    return body.branch("without_scores", "nothing")


_FUNCTIONS = {
    EMBED_TOKENS: _embed_tokens,
    LINEAR: lambda: _linear(LINEAR),
    LINEAR_OF_SOME: lambda: _linear(LINEAR_OF_SOME, may_be_empty=True),
    LINEAR_RELU: lambda: _linear(LINEAR_RELU, relu=True),
    LINEAR_ADD: lambda: _linear(LINEAR_ADD, residual=True),
    LINEAR_ADD_NORMALIZATION: lambda: _linear(LINEAR_ADD_NORMALIZATION, residual=True, normalization=True),
    SELF_ATTENTION: lambda: _cached_attention(SELF_ATTENTION, ["fused"]),
    BIASED_SELF_ATTENTION: lambda: _cached_attention(BIASED_SELF_ATTENTION, ["fused"], biased=True),
    BIASED_SOURCE_ATTENTION: lambda: _source_attention(biased=True),
    CROSS_ATTENTION: lambda: _cached_attention(CROSS_ATTENTION, ["query", "last_key", "last_value"]),
    SOURCE_ATTENTION: lambda: _source_attention(),
    BEST_TOKENS: best_tokens,
    BEST_LISTED_TOKENS: lambda: best_tokens(listed=True),
    LISTED_LOGITS: listed_logits,
}
