"""Names of the tensors in a bundle's graphs."""

from typing import Literal

ENCODER_FILE = "encoder.onnx"
DECODER_FILE = "decoder.onnx"
CHOOSE_FILE = "choose.onnx"
RANK_FILE = "rank.onnx"
MOVE_FILE = "move.onnx"
SHORTLIST_FILE = "shortlist.bin"
WEIGHTS_SUFFIX = ".weights"  # of the file with the weights of a large graph, which is mapped into memory
GRAPH_FILES = (ENCODER_FILE, DECODER_FILE)
PART_FILES = (CHOOSE_FILE, RANK_FILE, MOVE_FILE)  # in bundles of layout "parts" only


# Tensor names. `{layer}` counts from 0; each cache is bound as input and output to the same memory.
SOURCE_TOKENS = "source_tokens"  # int32 [rows, source_len], any token after the end of a row
SOURCE_LENGTHS = "source_lengths"  # int32 [rows]
CROSS_KEYS_VALUES = "cross_keys_values"  # [2 * layers, rows, heads, source_len, head_dim], keys at even indices
HIDDEN_STATES = "hidden_states"  # float32 [rows, source_len, d_model], undefined after a row's length; for embeddings
PREVIOUS_TOKENS = "previous_tokens"  # int32 [rows]
PAST_LENGTHS = "past_lengths"  # int32 [rows]: number of valid positions of the row's self cache
NUM_CANDIDATES = "num_candidates"  # int64 [1]
WITH_SCORES = "with_scores"  # bool [1]: compute `log_normalizer`, which reads the whole vocabulary again
LOGIT_ROWS = "logit_rows"  # int64 [logit_rows]: rows whose whole distribution is required; usually none
# Inputs of the decoder of a bundle with a shortlist:
LISTS = "token_lists"  # int32 [lists, capacity]: tokens in ascending order
LIST_LENGTHS = "list_lengths"  # int32 [lists]
LIST_OF_ROW = "list_of_row"  # int32 [rows]: the list whose tokens a row may have; -1 for all tokens
SELF_KEYS = "self_keys_{layer}"  # [rows, heads, max_target_tokens, head_dim], in place; int8 in an int8 bundle
SELF_VALUES = "self_values_{layer}"
# Instead of these two in a recurrent decoder: float32 [rows, 1, state_width], not read while a row's past length is 0.
# On CPUs in place.
STATE = "state_{layer}"
CROSS_KEYS = "cross_keys_{layer}"  # [rows, heads, max_source_tokens, head_dim], read only
CROSS_VALUES = "cross_values_{layer}"
LAST_CROSS_KEY = "last_cross_key_{layer}"  # [rows, 1, heads * head_dim]: the last source position's, never int8
LAST_CROSS_VALUE = "last_cross_value_{layer}"
LOGITS = "logits"  # float32 [logit_rows, target_vocab_size]; -inf for suppressed tokens
CROSS_QUERIES = "cross_queries_{layer}"  # [rows, 1, heads * head_dim], not scaled; for alignments
LIST_INPUTS = (LISTS, LIST_LENGTHS, LIST_OF_ROW)
PRESENT = "present_"  # prefix of the outputs that share the memory of the caches above
CANDIDATE_TOKENS = "candidate_tokens"  # int64 [rows, num_candidates], best first; undefined where the logit is -inf
CANDIDATE_LOGITS = "candidate_logits"  # float32 [rows, num_candidates]
LOG_NORMALIZER = "log_normalizer"  # float32 [rows]: log-probability = logit - log_normalizer; NaN without scores
STEP_LOGITS = "step_logits"  # from here on layout "parts": [rows, padded vocab], -inf for suppressed and padding
SUPPRESSED_LOGITS = "suppressed_logits"  # float32 [rows, suppressed tokens], if a model has any
SOURCE_WIDTH = "source_width"  # int32 scalar, an input of the encoder: source_len
NEXT_TOKENS = "next_tokens"  # int32 [rows]: the best token of each row
NEXT_LENGTHS = "next_lengths"  # int32 [rows]: past lengths with that token, at most the cache length


# Names in move.onnx; `side` is "from" or "to". Planes contain words of eight bytes.
MOVE_ROWS = "{side}_rows"  # int64 [moves]
MOVE_POSITIONS = "{side}_positions"  # int64 [moves, positions]
MOVE_LENGTH = "{side}_length"  # int64 [1]: capacity of a row in positions
MOVE_PLANE = "{side}_{plane}"  # int64 [rows * heads * length, words]
MOVED_PLANE = "moved_{plane}"  # shares the memory of the plane moved to
NUM_RANKED = 16  # candidates of each row, enough for the widest beam


# Factor of the cached keys and values of an int8 bundle. The model's keys and values are rescaled; queries and output
# projection compensate, see export.int8.key_value_ranges.
INT8_CACHE_STEP = 1 / 127
SHAPES_METADATA = "kvasir.shapes"  # each graph carries the `Shapes` it was exported with, as JSON, under this key
Precision = Literal["float32", "int8", "float16"]


Layout = Literal["step", "parts"]


def item_size(precision: Precision) -> int:
    """Return the size of a cached number in bytes."""
    return {"float32": 4, "float16": 2, "int8": 1}[precision]


def cache_names(layer: int, *, recurrent: bool = False) -> tuple[str, ...]:
    """Return the names of a decoder layer's caches, in the order of inputs and outputs, those of the source last."""
    own = (STATE,) if recurrent else (SELF_KEYS, SELF_VALUES)
    return tuple(name.format(layer=layer) for name in (*own, CROSS_KEYS, CROSS_VALUES))


def decoder_input_names(num_layers: int, layout: Layout = "step", *, recurrent: bool = False) -> tuple[str, ...]:
    """Return the inputs of the decoder graph, in order."""
    names = [PREVIOUS_TOKENS, PAST_LENGTHS, SOURCE_LENGTHS]
    names += [NUM_CANDIDATES, LOGIT_ROWS, WITH_SCORES] if layout == "step" else []
    for layer in range(num_layers):
        names += cache_names(layer, recurrent=recurrent)
        names += [LAST_CROSS_KEY.format(layer=layer), LAST_CROSS_VALUE.format(layer=layer)]
    return tuple(names)


def decoder_output_names(
    num_layers: int, layout: Layout = "step", *, recurrent: bool = False, has_suppressed: bool = False
) -> tuple[str, ...]:
    """Return the outputs of the decoder graph, in order."""
    names = [CANDIDATE_LOGITS, CANDIDATE_TOKENS]
    names += [LOG_NORMALIZER, LOGITS] if layout == "step" else [STEP_LOGITS, SUPPRESSED_LOGITS][: 1 + has_suppressed]
    for layer in range(num_layers):
        names += [PRESENT + name for name in cache_names(layer, recurrent=recurrent)]
        names.append(CROSS_QUERIES.format(layer=layer))
    return tuple(names)
