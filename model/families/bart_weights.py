"""Names of weights in checkpoints of BART and its relatives, Marian among them."""

from collections.abc import Iterable

from model.config import TransformerConfig

SHARED_EMBEDDING = "model.shared.weight"
SOURCE_EMBEDDING = "model.encoder.embed_tokens.weight"
TARGET_EMBEDDING = "model.decoder.embed_tokens.weight"
OUTPUT_PROJECTION = "lm_head.weight"
OUTPUT_BIAS = "final_logits_bias"

# (name in the checkpoint, our name) for parts of a weight's dotted name. A part precedes the parts that it contains.
RENAMED_PARTS = (
    ("self_attn_layer_norm", "self_attention_norm"),
    ("encoder_attn_layer_norm", "cross_attention_norm"),
    ("final_layer_norm", "feed_forward_norm"),
    ("self_attn", "self_attention"),
    ("encoder_attn", "cross_attention"),
    ("q_proj", "query_proj"),
    ("k_proj", "key_proj"),
    ("v_proj", "value_proj"),
    ("fc1", "feed_forward.inner_proj"),
    ("fc2", "feed_forward.outer_proj"),
    ("model.encoder.layernorm_embedding", "encoder.embedding_norm"),
    ("model.decoder.layernorm_embedding", "decoder.embedding_norm"),
    ("model.encoder.embed_tokens", "encoder.embedding"),
    ("model.decoder.embed_tokens", "decoder.embedding"),
    ("model.encoder.embed_positions", "encoder.positions"),
    ("model.decoder.embed_positions", "decoder.positions"),
    ("model.encoder.layer_norm", "encoder.final_norm"),
    ("model.decoder.layer_norm", "decoder.final_norm"),
    ("model.encoder.layers", "encoder.layers"),
    ("model.decoder.layers", "decoder.layers"),
    ("lm_head", "output_projection"),
    (OUTPUT_BIAS, "output_bias"),
)
POSITION_TABLES = tuple(f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
# Not read where positions are computed, for any length. transformers never reads the second of each stack.
_UNREAD_TABLES = (*POSITION_TABLES, *(f"{name}s" for name in POSITION_TABLES))


def stored_names(config: TransformerConfig, parameters: Iterable[str]) -> dict[str, list[str]]:
    """Return the names that each parameter can have in a checkpoint; a tied weight has several."""
    output_names = [OUTPUT_PROJECTION] if config.tie_output else []
    names: dict[str, list[str]] = {}
    for parameter in parameters:
        name = parameter
        for theirs, ours in RENAMED_PARTS:
            name = name.replace(ours, theirs)
        names[parameter] = [name]
    if config.tie_embeddings:
        names["encoder.embedding.weight"] = [SHARED_EMBEDDING, SOURCE_EMBEDDING, TARGET_EMBEDDING, *output_names]
    else:
        names["encoder.embedding.weight"] = [SOURCE_EMBEDDING]
        names["decoder.embedding.weight"] = [TARGET_EMBEDDING, *output_names]
    return names


def ignored_names(config: TransformerConfig) -> list[str]:
    """Return names that are allowed in a checkpoint and not read."""
    tables = list(_UNREAD_TABLES) if config.positions == "sinusoidal" else []
    biases = [] if config.output_bias else [OUTPUT_BIAS]
    # transformers 5 saves, but does not read, a shared embedding beside two that are not tied to it.
    unread = [] if config.tie_embeddings or config.target_vocab_size is not None else [SHARED_EMBEDDING]
    return [*tables, *biases, *unread]
