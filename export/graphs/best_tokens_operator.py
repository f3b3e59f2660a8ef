"""The end of an int8 decoder graph as one operator: output projection, best tokens, log normaliser."""

from onnx import AttributeProto, FunctionProto, GraphProto, TensorProto, helper

from export.graphs.onnx_function import DOMAIN, FunctionBody
from export.graphs.ranking import add_best_tokens, add_log_normalizer

BEST_TOKENS = "BestTokens"


def best_tokens() -> FunctionProto:
    """Return the function of the best `num_candidates` [1] tokens of `hidden` [rows, inputs] and the log normalisers.

    `Linear` computes the logits; `mask` [outputs], 0 or minus infinity, is added before they are ranked. The logarithm
    of the sum of the exponentials of all logits [rows] is NaN unless `with_scores` [1].
    """
    body = FunctionBody()
    body.attribute("block_size", AttributeProto.INT, "block_size")
    body.attribute("last_token", AttributeProto.INT, "last_token")
    for name, value in (("first", 0), ("last_axis", -1), ("behind_first", 1)):
        body.constant(name, [value])
    factors = ["hidden", "weight", "scales", "sums", "bias"]
    references = [("zero_point", AttributeProto.INT), ("levels", AttributeProto.FLOAT)]
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
    inputs = [*factors, "mask", "num_candidates", "with_scores"]
    outputs = ["candidate_logits", "tokens", "log_normalizer"]
    return body.function(BEST_TOKENS, inputs, outputs, ["zero_point", "levels", "block_size", "last_token"])


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
