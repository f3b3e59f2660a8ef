"""Configuration of a Marian checkpoint: sinusoidal positions in halves, a bias on the logits."""

from collections.abc import Mapping

from torch import Tensor

from model.config import TransformerConfig
from model.families.bart_settings import BartArchitecture, bart_config
from model.families.generation_settings import GenerationSettings

# Settings of config.json that change the output and are supported with one value only.
REQUIRED_VALUES: dict[str, tuple[object, str]] = {
    "static_position_embeddings": (True, "must be true: learned positions are not supported"),
}


def marian_config(settings: GenerationSettings, tensors: Mapping[str, Tensor]) -> TransformerConfig:
    """Return the configuration of a checkpoint. Raises `CheckpointError` that names the file and the setting."""
    settings.require(REQUIRED_VALUES)
    config = settings.config
    architecture = BartArchitecture(
        pre_norm=config.boolean("normalize_before", False),
        final_norm=config.boolean("add_final_layer_norm", False),
        embedding_norm=config.boolean("normalize_embedding", False),
    )
    return bart_config(settings, architecture, tensors)
