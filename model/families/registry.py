"""Model families, and the reader that finds the family of a checkpoint."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from model.checkpoints.checkpoint import Checkpoint, CheckpointError
from model.checkpoints.hugging_face_files import CONFIG_FILE, CheckpointFolder, Settings, find_checkpoint, read_settings
from model.checkpoints.language_codes import language_code
from model.families.bart import BART, M2M100, MBART, PEGASUS
from model.families.ctranslate2.reading import Argos, CTranslate2
from model.families.fairseq import Fairseq
from model.families.marian.hugging_face import Marian
from model.families.marian.native import MarianNative
from model.families.opennmt_py import OpenNMTPy
from model.families.t5 import T5


class Family(Protocol):
    """Reader of the checkpoints of one model family."""

    @property
    def name(self) -> str:
        """The family's name in error messages and in `bundle.json`."""

    def matches(self, config: Mapping[str, object]) -> bool:
        """Return whether a checkpoint with this config.json belongs to the family."""

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read a checkpoint of the family. Raises `CheckpointError` that names the file, setting or weights."""


class FolderFormat(Protocol):
    """Reader of checkpoints in another format than Hugging Face's."""

    @property
    def name(self) -> str:
        """The format's name in error messages and in `bundle.json`."""

    def matches(self, folder: CheckpointFolder) -> bool:
        """Return whether a folder is in the format."""

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read a checkpoint. Raises `CheckpointError` that names the file and the finding."""


FORMATS: tuple[FolderFormat, ...] = (Argos(), MarianNative(), CTranslate2(), Fairseq(), OpenNMTPy())
FAMILIES: tuple[Family, ...] = (Marian(), BART, MBART, M2M100, PEGASUS, T5())


# OPUS-MT's code for Japanese is the standard's for Jaruára.
_SPELLINGS = {"jap": "ja"}
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_added: list[FolderFormat] = []


def add_format(folder_format: FolderFormat) -> None:
    """Let `read_checkpoint` read a format of another package, before all others."""
    if all(known.name != folder_format.name for known in _added):
        _added.append(folder_format)


def read_checkpoint(
    folder_or_hub_name: str | Path | CheckpointFolder, report: Callable[[str], None] = lambda _: None
) -> Checkpoint:
    """Read the checkpoint in a folder, or download it from the hub if there is no folder of that name.

    `report` receives a line before a download. Raises `CheckpointError`, a `ValueError`.
    """
    folder = find_checkpoint(folder_or_hub_name, report)
    try:
        return _with_named_languages(_read(folder), folder.path)
    except CheckpointError as error:
        pointers = sorted(path.name for path in folder.path.iterdir() if path.is_file() and _is_pointer(path))
        if not pointers:
            raise
        listed = ", ".join(pointers)
        raise CheckpointError(
            f"{error}; files that are pointers of Git LFS: {listed}; get their contents with `git lfs pull`"
        ) from error


def _with_named_languages(checkpoint: Checkpoint, folder: Path) -> Checkpoint:
    """Return a checkpoint with the languages of tokenizer_config.json where its own format names none."""
    languages = checkpoint.languages
    if (languages.source and languages.target) or checkpoint.config.is_encoder_only:
        return checkpoint
    tokenizer = read_settings(folder / "tokenizer_config.json", required=False)
    source, target = (_named(tokenizer, *names) for names in (("source_lang", "src_lang"), ("target_lang", "tgt_lang")))
    languages = replace(languages, source=languages.source or source, target=languages.target or target)
    return replace(checkpoint, languages=languages)


def _named(tokenizer: Settings, *names: str) -> tuple[str, ...]:
    written = next((text for name in names if (text := tokenizer.text(name, ""))), "")
    return (language_code(_SPELLINGS.get(written, written)),) if written else ()


def _is_pointer(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(_LFS_POINTER)) == _LFS_POINTER


def _read(folder: CheckpointFolder) -> Checkpoint:
    for one_format in (*_added, *FORMATS):
        if one_format.matches(folder):
            return one_format.read(folder)
    config = read_settings(folder.path / CONFIG_FILE).values
    for family in FAMILIES:
        if family.matches(config):
            return family.read(folder)
    given = ", ".join(f"`{name}` {json.dumps(config.get(name))}" for name in ("model_type", "architectures"))
    supported = ", ".join(family.name for family in FAMILIES)
    raise CheckpointError(f"{CONFIG_FILE}: the model family is not supported. Supported: {supported}. Given: {given}")
