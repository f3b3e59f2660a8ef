"""The end of an int8 decoder graph as one operator: an output projection, its best tokens, and the log normaliser."""

from onnx import AttributeProto, FunctionProto, GraphProto, TensorProto, helper

from export.graphs.onnx_function import DOMAIN, FunctionBody

BEST_TOKENS = "BestTokens"


def best_tokens() -> FunctionProto:
    """The best `num_candidates` [1] tokens of `hidden` [rows, inputs] under an output projection, and normalisers.

    Logits are those of `Linear`; `mask` [outputs], 0 or minus infinity, is added to them before they are ranked. The
    logarithm of the sum of the exponentials of all logits [rows] is NaN unless `with_scores` [1].

    TopK over a whole vocabulary is slow. Here it sees the largest logits of blocks of `block_size` neighbours, and then
    the blocks with the largest ones: the best tokens can lie nowhere else.
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
    body = FunctionBody()
    body.add("LogSoftmax", ["logits"], "log_probs", axis=-1)
    body.add("Slice", ["tokens", "first", "behind_first", "last_axis"], "best_token")
    body.add("Slice", ["candidate_logits", "first", "behind_first", "last_axis"], "best_logit")
    body.add("GatherElements", ["log_probs", "best_token"], "best_log_prob", axis=1)
    body.add("Sub", ["best_logit", "best_log_prob"], "normalizer_column")
    body.add("Squeeze", ["normalizer_column", "last_axis"], "normalizer")
    return body.branch("with_scores", "normalizer")


def _no_normalizer() -> GraphProto:
    body = FunctionBody()
    body.add("Shape", ["candidate_logits"], "num_rows", start=0, end=1)
    nan = helper.make_tensor("value", TensorProto.FLOAT, [1], [float("nan")])
    body.add("ConstantOfShape", ["num_rows"], "nothing", value=nan)
    return body.branch("without_scores", "nothing")
