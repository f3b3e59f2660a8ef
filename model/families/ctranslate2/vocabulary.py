"""Vocabularies and special tokens of a CTranslate2 model."""

import json
from pathlib import Path

from model.checkpoints.errors import CheckpointError
from model.checkpoints.hugging_face_files import CONFIG_FILE, read_settings
from model.families.ctranslate2.attributes import Attributes
from model.families.listed_vocabulary import SpecialNames, Vocabularies

SHARED, SOURCE, TARGET = "shared_vocabulary", "source_vocabulary", "target_vocabulary"


def read_special_names(folder: Path, attributes: Attributes, version: int) -> SpecialNames:
    """Return the special tokens: in config.json since binary version 6, in model.bin before."""
    if version >= 6:
        settings = read_settings(folder / CONFIG_FILE)
        start = settings.values.get("decoder_start_token", "<s>")
        return SpecialNames(
            settings.text("unk_token", "<unk>"),
            settings.text("bos_token", "<s>"),
            settings.text("eos_token", "</s>"),
            None if start is None else settings.text("decoder_start_token", "<s>"),
            settings.boolean("add_source_bos", False),
            settings.boolean("add_source_eos", False),
        )
    beginning, end = attributes.text("bos_token", "<s>"), attributes.text("eos_token", "</s>")
    start = beginning if attributes.flag("with_target_bos", True) else end
    return SpecialNames(
        attributes.text("unk_token", "<unk>"),
        beginning,
        end,
        None if attributes.flag("user_decoder_start_tokens", False) else start,
        attributes.flag("with_source_bos", False),
        attributes.flag("with_source_eos", False),
    )


def layer_norm_epsilon(folder: Path, version: int, *, rms: bool) -> float:
    """Return the epsilon of all normalisations; its default depends on their kind."""
    default = 1e-6 if rms else 1e-5
    return read_settings(folder / CONFIG_FILE).number("layer_norm_epsilon", default) if version >= 6 else default


def read_vocabularies(folder: Path) -> Vocabularies:
    """Return the vocabularies, as JSON or with one token a line. Raises `CheckpointError` if a file is missing."""
    shared = _tokens(folder, SHARED)
    if shared is not None:
        return Vocabularies(shared, shared)
    source, target = _tokens(folder, SOURCE), _tokens(folder, TARGET)
    if source is None or target is None:
        raise CheckpointError(f"{folder} has neither {SHARED}.json or .txt nor {SOURCE} and {TARGET}")
    return Vocabularies(source, target)


def _tokens(folder: Path, name: str) -> list[str] | None:
    path = folder / f"{name}.json"
    try:
        if path.is_file():
            tokens = json.loads(path.read_text("utf-8"))
            if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
                raise CheckpointError(f"{path.name} must be a list of tokens")
            return tokens
        path = folder / f"{name}.txt"
        if not path.is_file():
            return None
        # Only line feeds end a line: tokens can be other separators.
        lines = path.read_bytes().decode("utf-8").split("\n")
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} is damaged: {error}") from error
    if lines and not lines[-1]:
        lines.pop()
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
    return lines
