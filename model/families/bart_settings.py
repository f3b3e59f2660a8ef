"""Configuration of BART and its relatives, Marian among them: one set of names in config.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from model.checkpoints.hugging_face_files import CheckpointError
from model.config import Activation, SinusoidLayout, TransformerConfig
from model.families.bart_weights import SOURCE_EMBEDDING, TARGET_EMBEDDING
from model.families.generation_settings import GenerationSettings

ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
REQUIRED_VALUES: dict[str, tuple[object, str]] = {
    "begin_suppress_tokens": (None, "must be null: tokens can only be suppressed at every position"),
}
# The epsilon of all LayerNorms in this family; no setting changes it.
_EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class BartArchitecture:
    """Choices that are the same in all checkpoints of a family, so that no setting names them."""

    pre_norm: bool = False
    final_norm: bool = False
    embedding_norm: bool = False
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    sinusoid_layout: SinusoidLayout = "halves"
    position_offset: int = 0
    output_bias: bool = True
    default_activation: str = "gelu"


def bart_config(
    settings: GenerationSettings, architecture: BartArchitecture, tensors: Mapping[str, Tensor]
) -> TransformerConfig:
    """Return the configuration of a checkpoint. Raises `CheckpointError` that names the file and the setting."""
    settings.require(REQUIRED_VALUES)
    config = settings.config
    activation = config.text("activation_function", architecture.default_activation)
    if activation not in ACTIVATIONS:
        config.reject("activation_function", f"must be one of {', '.join(ACTIVATIONS)}")
    vocab_size = config.integer("vocab_size")
    one_vocabulary = config.boolean("share_encoder_decoder_embeddings", True)
    tie_output = config.boolean("tie_word_embeddings", True)
    forced_eos = settings.forces_end
    max_tokens = config.integer("max_position_embeddings")
    try:
        return TransformerConfig(
            vocab_size=vocab_size,
            target_vocab_size=None if one_vocabulary else config.integer("decoder_vocab_size", vocab_size),
            d_model=config.integer("d_model"),
            num_heads=config.integer("encoder_attention_heads"),
            decoder_num_heads=config.integer("decoder_attention_heads"),
            feed_forward_width=config.integer("encoder_ffn_dim"),
            decoder_feed_forward_width=config.integer("decoder_ffn_dim"),
            num_encoder_layers=config.integer("encoder_layers"),
            num_decoder_layers=config.integer("decoder_layers"),
            dropout=config.number("dropout", 0.1),
            attention_dropout=config.number("attention_dropout", 0.0),
            activation_dropout=config.number("activation_dropout", 0.0),
            activation=ACTIVATIONS[activation],
            norm_placement="pre" if architecture.pre_norm else "post",
            final_norm=architecture.final_norm,
            layer_norm_epsilon=_EPSILON,
            embedding_norm=architecture.embedding_norm,
            positions=architecture.positions,
            sinusoid_layout=architecture.sinusoid_layout,
            position_offset=architecture.position_offset,
            scale_embedding=config.boolean("scale_embedding", False),
            tie_embeddings=one_vocabulary and not _embeddings_differ(tie_output, tensors),
            tie_output=tie_output,
            output_bias=architecture.output_bias,
            max_source_tokens=max_tokens,
            max_target_tokens=max_tokens,
            pad_token_id=settings.integer("pad_token_id"),
            eos_token_id=settings.integer("eos_token_id"),
            decoder_start_token_id=settings.integer("decoder_start_token_id"),
            bos_token_id=settings.optional_integer("bos_token_id"),
            suppressed_token_ids=settings.suppressed,
            forced_first_token_id=settings.optional_integer("forced_bos_token_id"),
            forced_eos=forced_eos,
        )
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{config.file_name}: {error}") from error


def _embeddings_differ(tie_output: bool, tensors: Mapping[str, Tensor]) -> bool:
    # Without tie_word_embeddings, transformers 4 ties the two embeddings of one vocabulary and transformers 5 does not.
    # The settings are equal; only the weights differ.
    source, target = tensors.get(SOURCE_EMBEDDING), tensors.get(TARGET_EMBEDDING)
    return not tie_output and source is not None and target is not None and not torch.equal(source, target)
