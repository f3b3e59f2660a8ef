"""Requirements of a bundle on the sizes and languages of a checkpoint."""

from dataclasses import replace

from bundle.tensors import Precision
from kernels.layout import MAX_HEAD_DIM
from model.checkpoints.checkpoint import Checkpoint, Languages
from model.config import TransformerConfig

MIN_TOKENS = 8
"""Shortest maximum of source and target. With fewer tokens the graphs cannot be traced and verified."""


class ExportError(ValueError):
    """A checkpoint that cannot become a bundle; the message names the file or size."""


def require_sizes(config: TransformerConfig, precision: Precision) -> None:
    """Raise `ExportError` for a model that graphs of this precision do not support."""
    if config.is_encoder_only and precision == "float16":
        raise ExportError("an encoder without a decoder is exported in float32 or int8. Given: float16")
    max_tokens = config.max_source_tokens
    if not config.is_encoder_only:
        max_tokens = min(max_tokens, config.max_target_tokens)
    if max_tokens < MIN_TOKENS:
        raise ExportError(f"the model must accept at least {MIN_TOKENS} tokens. Given: {max_tokens}")
    head_dim = max(config.encoder_shape.head_dim, config.decoder_shape.head_dim)
    if precision == "int8" and head_dim > MAX_HEAD_DIM:
        raise ExportError(
            f"the attention heads of an int8 model must be at most {MAX_HEAD_DIM} wide. Given: {head_dim}; "
            "export it in float32"
        )


def with_checked_tasks(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint without tasks that it was not trained for.

    A model with languages translates. It also generates if its settings name other tasks. Raises `ExportError` for a
    model that neither has languages nor generates.
    """
    if checkpoint.config.is_encoder_only:
        return replace(checkpoint, languages=Languages((), ()), generation=None)
    has_source, has_target = bool(checkpoint.languages.source), bool(checkpoint.languages.target)
    if has_source and has_target:
        has_tasks = checkpoint.generation is not None and checkpoint.generation.tasks
        return checkpoint if has_tasks else replace(checkpoint, generation=None)
    if checkpoint.generation is None or has_source or has_target:
        missing = "no languages" if not (has_source or has_target) else f"no {'target' if has_source else 'source'}"
        raise ExportError(
            f"{checkpoint.provenance.source} names {missing}; "
            'add "source_lang" and "target_lang" to its tokenizer_config.json, or set --source and --target'
        )
    return checkpoint
