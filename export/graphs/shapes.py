"""Sizes of the graphs, for `bundle.json`."""

from bundle.manifest import Shapes
from export.graphs.attention import padded_head_dim
from model.config import TransformerConfig

_HEAD_MULTIPLE = 8


def state_width(config: TransformerConfig) -> int:
    """Return the size of the state of a decoder layer in the graphs; 0 if the decoder is not recurrent.

    On devices states are moved like keys and values, as equal parts of whole words for each head.
    """
    multiple = _HEAD_MULTIPLE * config.decoder_shape.num_heads
    return -(-config.d_model // multiple) * multiple if config.has_recurrent_decoder else 0


def describe_shapes(config: TransformerConfig) -> Shapes:
    """Return the sizes of the graphs of a model with this configuration."""
    shape = config.encoder_shape if config.is_encoder_only else config.decoder_shape
    return Shapes(
        vocab_size=config.vocab_size,
        target_vocab_size=shape.vocab_size,
        d_model=config.d_model,
        num_encoder_layers=config.num_encoder_layers,
        num_decoder_layers=config.num_decoder_layers,
        num_heads=shape.num_heads,
        head_dim=padded_head_dim(shape.head_dim),
        max_source_tokens=config.max_source_tokens,
        max_target_tokens=config.max_target_tokens,
        state_width=state_width(config),
    )
