"""Marian checkpoints in Hugging Face's format, as OPUS-MT models are published (Tiedemann and Thottingal 2020)."""

from collections.abc import Mapping

from model.checkpoints.checkpoint import Checkpoint, Languages, Provenance, TokenizerFiles
from model.checkpoints.hugging_face_files import CheckpointFolder, read_settings, read_weights
from model.checkpoints.weights import parameter_shapes, select_weights
from model.families.bart_weights import ignored_names, stored_names
from model.families.generation_settings import GenerationSettings
from model.families.marian.config import DEFAULTS, marian_config
from model.families.marian.language_tokens import language_tokens

TOKENIZER_FILES = ("source.spm", "target.spm", "vocab.json", "target_vocab.json")


class Marian:
    """Reader of Marian checkpoints: a `Family`."""

    name = "marian"

    def matches(self, config: Mapping[str, object]) -> bool:
        """Return whether config.json names this family or no family."""
        return config.get("model_type") in ("marian", None)

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read the checkpoint in a folder. Raises `CheckpointError` that names the file, setting or weights."""
        stored = read_weights(folder.path)

        config = marian_config(GenerationSettings.read(folder.path, DEFAULTS), stored.tensors)
        shapes = parameter_shapes(config)
        weights = select_weights(
            shapes, stored.tensors, stored_names(config, shapes), ignored_names(config), folder.name
        )
        files = {name: folder.path / name for name in TOKENIZER_FILES if (folder.path / name).is_file()}
        vocabulary = files.get("vocab.json")
        prefixes = {} if vocabulary is None else language_tokens(read_settings(vocabulary).values)
        return Checkpoint(
            config=config,
            weights=weights,
            tokenizer=TokenizerFiles("marian", files),
            languages=Languages((), tuple(prefixes), source_prefix=prefixes),
            provenance=Provenance(folder.name, self.name, stored.sha256),
        )
