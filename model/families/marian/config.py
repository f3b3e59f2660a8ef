"""The TransformerConfig that a Marian checkpoint's settings describe.

The family: post-norm, no final norm, sinusoidal positions in halves, and a bias on the logits.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from model.checkpoints.hugging_face_files import CheckpointError, Settings
from model.config import Activation, TransformerConfig

SOURCE_EMBEDDING = "model.encoder.embed_tokens.weight"
TARGET_EMBEDDING = "model.decoder.embed_tokens.weight"

ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}
# Settings of config.json or generation_config.json that change what a model computes and that nothing here applies.
UNSUPPORTED: dict[str, tuple[object, str]] = {
    "normalize_before": (False, "Marian checkpoints are post-norm"),
    "normalize_embedding": (False, "embeddings without a LayerNorm are supported"),
    "add_final_layer_norm": (False, "stacks without a final LayerNorm are supported"),
    "static_position_embeddings": (True, "computed sinusoidal positions are supported"),
    "forced_bos_token_id": (None, "answers without a forced first token are supported"),
    "begin_suppress_tokens": (None, "tokens are suppressed at every place or at none"),
}


def marian_config(settings: Settings, generation: Settings, tensors: Mapping[str, Tensor]) -> TransformerConfig:
    """Return the configuration of config.json and generation_config.json; the second takes precedence.

    Raises `CheckpointError` that names the file and the setting.
    """
    for one_file in (settings, generation):
        for name, (supported, reason) in UNSUPPORTED.items():
            if one_file.values.get(name) not in (supported, None, []):
                one_file.refuse(name, reason)
    activation = settings.text("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        settings.refuse("activation_function", f"these are supported: {', '.join(ACTIVATIONS)}")

    vocab_size = settings.integer("vocab_size")
    one_vocabulary = settings.boolean("share_encoder_decoder_embeddings", True)
    tie_output = settings.boolean("tie_word_embeddings", True)
    eos_token_id = _owner("eos_token_id", settings, generation).integer("eos_token_id")
    forced_eos_token_id = _owner("forced_eos_token_id", settings, generation).optional_integer("forced_eos_token_id")
    if forced_eos_token_id not in (None, eos_token_id):
        owner = _owner("forced_eos_token_id", settings, generation)
        owner.refuse("forced_eos_token_id", f"eos_token_id {eos_token_id} or null is needed")
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
    # The file that decides a setting both may have.
    return settings if generation.values.get(name) is None else generation


def _suppressed(settings: Settings, generation: Settings) -> tuple[int, ...]:
    suppressed: set[int] = set()
    for name in ("bad_words_ids", "suppress_tokens"):
        owner = _owner(name, settings, generation)
        entries = owner.values.get(name)
        if entries is None:
            continue
        if not isinstance(entries, list):
            owner.refuse(name, "a list is needed")
        for entry in entries:
            sequence = entry if isinstance(entry, list) else [entry]
            if len(sequence) != 1 or isinstance(sequence[0], bool) or not isinstance(sequence[0], int):
                owner.refuse(name, f"single tokens can be suppressed, {entry} is something else")
            suppressed.add(sequence[0])
    return tuple(sorted(suppressed))


def _embeddings_differ(tie_output: bool, tensors: Mapping[str, Tensor]) -> bool:
    # Without tie_word_embeddings, transformers 4 still ties the two embeddings of one vocabulary and transformers 5
    # does not. The settings look the same; the weights tell.
    source, target = tensors.get(SOURCE_EMBEDDING), tensors.get(TARGET_EMBEDDING)
    return not tie_output and source is not None and target is not None and not torch.equal(source, target)
