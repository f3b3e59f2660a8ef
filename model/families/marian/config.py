"""Configuration of a Marian checkpoint: post-norm, sinusoidal positions in halves, a bias on the logits."""

from collections.abc import Mapping

import torch
from torch import Tensor

from model.checkpoints.hugging_face_files import CheckpointError, Settings
from model.config import Activation, TransformerConfig

SOURCE_EMBEDDING = "model.encoder.embed_tokens.weight"
TARGET_EMBEDDING = "model.decoder.embed_tokens.weight"

ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}
# Settings of config.json or generation_config.json that change the output and are supported with one value only.
REQUIRED_VALUES: dict[str, tuple[object, str]] = {
    "normalize_before": (False, "must be false: Marian models are post-norm"),
    "normalize_embedding": (False, "must be false: embeddings with a LayerNorm are not supported"),
    "add_final_layer_norm": (False, "must be false: a final LayerNorm is not supported"),
    "static_position_embeddings": (True, "must be true: learned positions are not supported"),
    "forced_bos_token_id": (None, "must be null: a forced first token is not supported"),
    "begin_suppress_tokens": (None, "must be null: tokens can only be suppressed at every position"),
}


def marian_config(settings: Settings, generation: Settings, tensors: Mapping[str, Tensor]) -> TransformerConfig:
    """Return the configuration of config.json and generation_config.json; the second takes precedence.

    Raises `CheckpointError` that names the file and the setting.
    """
    for one_file in (settings, generation):
        for name, (supported, requirement) in REQUIRED_VALUES.items():
            if one_file.values.get(name) not in (supported, None, []):
                one_file.reject(name, requirement)
    activation = settings.text("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        settings.reject("activation_function", f"must be one of {', '.join(ACTIVATIONS)}")

    vocab_size = settings.integer("vocab_size")
    one_vocabulary = settings.boolean("share_encoder_decoder_embeddings", True)
    tie_output = settings.boolean("tie_word_embeddings", True)
    eos_token_id = _owner("eos_token_id", settings, generation).integer("eos_token_id")
    forced_eos_token_id = _owner("forced_eos_token_id", settings, generation).optional_integer("forced_eos_token_id")
    if forced_eos_token_id not in (None, eos_token_id):
        owner = _owner("forced_eos_token_id", settings, generation)
        owner.reject("forced_eos_token_id", f"must be `eos_token_id` {eos_token_id} or null")
    max_tokens = settings.integer("max_position_embeddings")
    try:
        return TransformerConfig(
            vocab_size=vocab_size,
            target_vocab_size=None if one_vocabulary else settings.integer("decoder_vocab_size", vocab_size),
            d_model=settings.integer("d_model"),
            num_heads=settings.integer("encoder_attention_heads"),
            decoder_num_heads=settings.integer("decoder_attention_heads"),
            feed_forward_width=settings.integer("encoder_ffn_dim"),
            decoder_feed_forward_width=settings.integer("decoder_ffn_dim"),
            num_encoder_layers=settings.integer("encoder_layers"),
            num_decoder_layers=settings.integer("decoder_layers"),
            dropout=settings.number("dropout", 0.1),
            attention_dropout=settings.number("attention_dropout", 0.0),
            activation_dropout=settings.number("activation_dropout", 0.0),
            activation=ACTIVATIONS[activation],
            norm_placement="post",
            final_norm=False,
            layer_norm_epsilon=1e-5,
            positions="sinusoidal",
            sinusoid_layout="halves",
            scale_embedding=settings.boolean("scale_embedding", False),
            tie_embeddings=one_vocabulary and not _embeddings_differ(tie_output, tensors),
            tie_output=tie_output,
            output_bias=True,
            max_source_tokens=max_tokens,
            max_target_tokens=max_tokens,
            pad_token_id=_owner("pad_token_id", settings, generation).integer("pad_token_id"),
            eos_token_id=eos_token_id,
            decoder_start_token_id=_owner("decoder_start_token_id", settings, generation).integer(
                "decoder_start_token_id"
            ),
            bos_token_id=_owner("bos_token_id", settings, generation).optional_integer("bos_token_id"),
            suppressed_token_ids=_suppressed(settings, generation),
            forced_eos=forced_eos_token_id is not None,
        )
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{settings.file_name}: {error}") from error


def _owner(name: str, settings: Settings, generation: Settings) -> Settings:
    # generation_config.json takes precedence.
    return settings if generation.values.get(name) is None else generation


def _suppressed(settings: Settings, generation: Settings) -> tuple[int, ...]:
    suppressed: set[int] = set()
    for name in ("bad_words_ids", "suppress_tokens"):
        owner = _owner(name, settings, generation)
        entries = owner.values.get(name)
        if entries is None:
            continue
        if not isinstance(entries, list):
            owner.reject(name, "must be a list")
        for entry in entries:
            sequence = entry if isinstance(entry, list) else [entry]
            if len(sequence) != 1 or isinstance(sequence[0], bool) or not isinstance(sequence[0], int):
                owner.reject(name, f"must contain single tokens, not {entry}")
            suppressed.add(sequence[0])
    return tuple(sorted(suppressed))


def _embeddings_differ(tie_output: bool, tensors: Mapping[str, Tensor]) -> bool:
    # Without tie_word_embeddings, transformers 4 ties the two embeddings of one vocabulary and transformers 5 does not.
    # The settings are equal; only the weights differ.
    source, target = tensors.get(SOURCE_EMBEDDING), tensors.get(TARGET_EMBEDDING)
    return not tie_output and source is not None and target is not None and not torch.equal(source, target)
