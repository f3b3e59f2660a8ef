"""Packages of Argos Translate: `metadata.json`, a CTranslate2 model in `model/`, and a SentencePiece model."""

from dataclasses import replace

from model.checkpoints.checkpoint import Checkpoint, Languages
from model.checkpoints.errors import CheckpointError
from model.checkpoints.hugging_face_files import CheckpointFolder, Settings, read_settings
from model.checkpoints.language_codes import language_code
from model.families.ctranslate2.reading import WEIGHTS_FILE, read_model

_METADATA, _MODEL = "metadata.json", "model"
# Codes of Argos that are no language codes, or those of other languages.
_SPELLINGS = {"pb": "pt-BR", "zt": "zh-Hant"}


class Argos:
    """Reader of an extracted package: a `FolderFormat`."""

    name = "argos"

    def matches(self, folder: CheckpointFolder) -> bool:
        """Return whether a folder is such a package."""
        return (folder.path / _METADATA).is_file() and (folder.path / _MODEL / WEIGHTS_FILE).is_file()

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read a package. Raises `CheckpointError` that names the file or the setting."""
        metadata = read_settings(folder.path / _METADATA)
        if metadata.text("type", "translate") != "translate":
            metadata.reject("type", 'must be "translate"')
        checkpoint = read_model(CheckpointFolder(folder.path / _MODEL, folder.name), folder.path, self.name)
        source, target = (_codes(metadata, name) for name in ("from", "to"))
        languages = Languages(source, target)
        if prefix := metadata.text("target_prefix", ""):
            languages = replace(languages, first_tokens=dict.fromkeys(target, _token(checkpoint, prefix)))
        return replace(checkpoint, languages=languages)


def _codes(metadata: Settings, side: str) -> tuple[str, ...]:
    written = metadata.text(f"{side}_code", "")
    listed = metadata.values.get(f"{side}_codes") or []
    if not isinstance(listed, list) or not all(isinstance(code, str) for code in listed):
        metadata.reject(f"{side}_codes", "must be a list of language codes")
    codes = [code for code in (written, *listed) if code]
    if not codes:
        metadata.reject(f"{side}_code", "must be a language code")
    return tuple(dict.fromkeys(language_code(_SPELLINGS.get(code, code)) for code in codes))


def _token(checkpoint: Checkpoint, prefix: str) -> int:
    vocabulary = checkpoint.tokenizer.target_vocabulary
    if prefix not in vocabulary:
        raise CheckpointError(f"{_METADATA}: `target_prefix` must be a token of the vocabulary. Given: {prefix}")
    return vocabulary[prefix]
