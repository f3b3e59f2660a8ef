"""Vocabularies of a model in Marian's own format, as files of a tokenizer."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from model.checkpoints.checkpoint import TokenizerFiles
from model.checkpoints.errors import CheckpointError
from model.checkpoints.sentencepiece_models import all_pieces, open_sentencepiece
from model.families.marian.description import read_yaml

END: Final = "</s>"
UNKNOWN: Final = "<unk>"
_PAIR: Final = ("source.spm", "target.spm")


@dataclass(frozen=True, slots=True)
class NativeVocabularies:
    """Numbers of the pieces of source and target."""

    source: dict[str, int]
    target: dict[str, int]


def read_vocabularies(paths: tuple[Path, Path]) -> NativeVocabularies:
    """Read both vocabularies. Raises `CheckpointError` that names the file."""
    source = _pieces(paths[0])
    target = source if paths[1] == paths[0] else _pieces(paths[1])
    for vocabulary, path in zip((source, target), paths, strict=True):
        for name in (END, UNKNOWN):
            if name not in vocabulary:
                raise CheckpointError(f"{path.name} has no {name}")
    if source[END] != target[END] or source[UNKNOWN] != target[UNKNOWN]:
        raise CheckpointError(f"{paths[0].name} and {paths[1].name} number {END} or {UNKNOWN} differently")
    return NativeVocabularies(source, target)


def tokenizer_files(folder: Path, paths: tuple[Path, Path], vocabularies: NativeVocabularies) -> TokenizerFiles:
    """Return the tokenizer: the vocabularies if they are SentencePiece models, otherwise the models beside them."""
    converted = {"vocab.json": json.dumps(vocabularies.source).encode()}
    if vocabularies.target != vocabularies.source:
        converted["target_vocab.json"] = json.dumps(vocabularies.target).encode()
    if all(path.suffix == ".spm" for path in paths):
        if paths[0] == paths[1]:
            return TokenizerFiles("sentencepiece", {_PAIR[0]: paths[0]}, converted=converted)
        return TokenizerFiles("marian", dict(zip(_PAIR, paths, strict=True)), converted=converted)
    if all((folder / name).is_file() for name in _PAIR):
        return TokenizerFiles("marian", {name: folder / name for name in _PAIR}, converted=converted)
    raise CheckpointError(
        f"{paths[0].name} lists the pieces of a tokenizer that is not in {folder.name}; copy its {' and '.join(_PAIR)} "
        "into the folder"
    )


def _pieces(path: Path) -> dict[str, int]:
    if path.suffix == ".spm":
        return {piece: index for index, piece in enumerate(all_pieces(open_sentencepiece(path)))}
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name} is damaged: {error}") from error
    if path.suffix == ".txt":
        return {piece: index for index, piece in enumerate(text.removesuffix("\n").split("\n"))}
    try:
        listed: object = json.loads(text)
    except (ValueError, RecursionError):
        listed = read_yaml(text, path.name)
    if not isinstance(listed, dict) or not all(type(number) is int for number in listed.values()):
        raise CheckpointError(f"{path.name} must number its pieces")
    return {str(piece): number for piece, number in listed.items()}
