"""Configuration of BART and its relatives, Marian among them: one set of names in config.json."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from model.checkpoints.hugging_face_files import CheckpointError
from model.config import Activation, Positions, SinusoidLayout, TransformerConfig
from model.families.bart_weights import POSITION_TABLES, SOURCE_EMBEDDING, TARGET_EMBEDDING
from model.families.generation_settings import GenerationSettings
from model.families.position_tables import sinusoid_of

ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
DEFAULTS: Mapping[str, object] = {
    "vocab_size": 50265,
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "max_position_embeddings": 1024,
    "activation_function": "gelu",
    "scale_embedding": False,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
"""Defaults of BART's class in transformers; other families differ in some."""
# The epsilon of all LayerNorms in this family; no setting changes it.
_EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class BartArchitecture:
    """Choices that are the same in all checkpoints of a family, so that no setting names them."""

    pre_norm: bool = False
    final_norm: bool = False
    embedding_norm: bool = False
    positions: Positions = "sinusoidal"
    sinusoid_layout: SinusoidLayout = "halves"
    position_offset: int = 0
    output_bias: bool = True
    reads_position_tables: bool = False
    """Whether stored tables count where positions are sinusoidal."""


def bart_config(
    settings: GenerationSettings, architecture: BartArchitecture, tensors: Mapping[str, Tensor]
) -> TransformerConfig:
    """Return the configuration of a checkpoint. Raises `CheckpointError` that names the file and the setting."""
    config = settings.config
    activation = config.text("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        config.reject("activation_function", f"must be one of {', '.join(ACTIVATIONS)}")
    vocab_size = config.integer("vocab_size")
    one_vocabulary = config.boolean("share_encoder_decoder_embeddings", True)
    tie_output = config.boolean("tie_word_embeddings", True)
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
            positions=_positions(architecture, tensors),
            sinusoid_layout=architecture.sinusoid_layout,
            position_offset=architecture.position_offset,
            scale_embedding=config.boolean("scale_embedding", False),
            tie_embeddings=one_vocabulary and not _embeddings_differ(tie_output, tensors),
            tie_output=tie_output,
            output_bias=architecture.output_bias,
            max_source_tokens=max_tokens,
            max_target_tokens=max_tokens,
            pad_token_id=settings.padding,
            eos_token_id=settings.token("eos_token_id"),
            decoder_start_token_id=settings.decoder_start,
            bos_token_id=config.optional_integer("bos_token_id"),
            suppressed_token_ids=settings.suppressed,
            forced_first_token_id=settings.forced_first,
            forced_eos=settings.forces_end,
        )
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{config.file_name}: {error}") from error


def _positions(architecture: BartArchitecture, tensors: Mapping[str, Tensor]) -> Positions:
    """Return the kind of positions: a stored table that is not the computed one counts as learned."""
    tables = [tensors[name] for name in POSITION_TABLES if name in tensors]
    if not architecture.reads_position_tables:
        return architecture.positions
    computed = architecture.sinusoid_layout, architecture.position_offset
    return "sinusoidal" if all(sinusoid_of(table) == computed for table in tables) else "learned"


def _embeddings_differ(tie_output: bool, tensors: Mapping[str, Tensor]) -> bool:
    # Without tie_word_embeddings, transformers 4 ties the two embeddings of one vocabulary and transformers 5 does not.
    # The settings are equal; only the weights differ.
    source, target = tensors.get(SOURCE_EMBEDDING), tensors.get(TARGET_EMBEDDING)
    return not tie_output and source is not None and target is not None and not torch.equal(source, target)
