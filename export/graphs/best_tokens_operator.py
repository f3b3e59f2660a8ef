"""The end of an int8 decoder graph as one operator: output projection, best tokens, log normaliser."""

from onnx import AttributeProto, FunctionProto, GraphProto, TensorProto, helper

from export.graphs.onnx_function import DOMAIN, FunctionBody
from export.graphs.ranking import add_best_tokens, add_log_normalizer

BEST_TOKENS = "BestTokens"
BEST_LISTED_TOKENS = "BestListedTokens"
LISTED_LOGITS = "ListedLogits"
_LISTS = ["lists", "lengths", "list_of_row"]


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
