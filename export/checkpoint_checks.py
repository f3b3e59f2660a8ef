"""Requirements of a bundle on the sizes and languages of a checkpoint."""

from bundle.tensors import Precision
from kernels.weight_layout import MAX_HEAD_DIM
from model.checkpoints.checkpoint import Checkpoint
from model.config import TransformerConfig

MIN_TOKENS = 8
"""Shortest maximum of source and target. With fewer tokens the graphs cannot be traced and verified."""


class ExportError(ValueError):
    """A checkpoint that cannot become a bundle; the message names the file or size."""


def require_sizes(config: TransformerConfig, precision: Precision) -> None:
    """Raise `ExportError` for a model that graphs of this precision do not support."""
    max_tokens = min(config.max_source_tokens, config.max_target_tokens)
    if max_tokens < MIN_TOKENS:
        raise ExportError(f"the model must accept at least {MIN_TOKENS} tokens. Given: {max_tokens}")
    head_dim = max(config.encoder_shape.head_dim, config.decoder_shape.head_dim)
    if precision == "int8" and head_dim > MAX_HEAD_DIM:
        raise ExportError(
            f"the attention heads of an int8 model must be at most {MAX_HEAD_DIM} wide. Given: {head_dim}; "
            "export it in float32"
        )


def require_languages(checkpoint: Checkpoint) -> None:
    """Raise `ExportError` for a checkpoint without source or target languages."""
    if not checkpoint.languages.source or not checkpoint.languages.target:
        raise ExportError(
            f"{checkpoint.provenance.source} names no languages; "
            'add "source_lang" and "target_lang" to its tokenizer_config.json, or set --source and --target'
        )
