"""Configuration of a Marian checkpoint: sinusoidal positions in halves, a bias on the logits."""

from collections.abc import Mapping

from torch import Tensor

from model.config import TransformerConfig
from model.families.bart_settings import DEFAULTS as _OF_BART
from model.families.bart_settings import BartArchitecture, bart_config
from model.families.generation_settings import GenerationSettings

DEFAULTS: Mapping[str, object] = {
    **_OF_BART,
    "vocab_size": 58101,
    "pad_token_id": 58100,
    "bos_token_id": None,
    "eos_token_id": 0,
}
"""Defaults of the class in transformers."""


def marian_config(settings: GenerationSettings, tensors: Mapping[str, Tensor]) -> TransformerConfig:
    """Return the configuration of a checkpoint. Raises `CheckpointError` that names the file and the setting.

    `norm_placement`, `final_norm` and `embedding_norm` are settings of Kvasir's: published checkpoints have none.
    transformers computes post-norm models only, whatever `normalize_before` and its relatives say.
    """
    config = settings.config
    placement = config.text("norm_placement", "post")
    if placement not in ("post", "pre"):
        config.reject("norm_placement", "must be post or pre")
    architecture = BartArchitecture(
        pre_norm=placement == "pre",
        final_norm=config.boolean("final_norm", False),
        embedding_norm=config.boolean("embedding_norm", False),
        reads_position_tables=True,
    )
    return bart_config(settings, architecture, tensors)
