"""What `bundle.json` says of a Marian checkpoint, and what the checkpoint must have for it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from bundle.tensors import Precision
from bundle.tokenizer_files import (
    REQUIRED_TOKENIZER_FILES,
    SOURCE_SENTENCEPIECE_FILE,
    TARGET_SENTENCEPIECE_FILE,
    TARGET_VOCABULARY_FILE,
    VOCABULARY_FILE,
)
from kernels.weight_layout import MAX_HEAD_DIM
from model.config import TransformerConfig
from model.families.marian.reading import MarianCheckpoint

UNKNOWN_TOKEN = "<unk>"  # noqa: S105 - a piece of text, not a secret
MIN_TOKENS = 8
"""Of a source or target. With fewer there is nothing to trace, and nothing to verify."""
MAX_MISSING_RATIO = 0.5
"""Of the pieces of a SentencePiece model; with more, it is that of another vocabulary."""


class ExportError(ValueError):
    """A checkpoint that cannot become a bundle; the message says what is wrong with which."""


def require_sizes(config: TransformerConfig, precision: Precision) -> None:
    """Raise `ExportError` for a model that graphs of this precision are not made for."""
    max_tokens = min(config.max_source_tokens, config.max_target_tokens)
    if max_tokens < MIN_TOKENS:
        raise ExportError(f"the model has room for {max_tokens} tokens; {MIN_TOKENS} are the least that is exported")
    head_dim = max(config.encoder_shape.head_dim, config.decoder_shape.head_dim)
    if precision == "int8" and head_dim > MAX_HEAD_DIM:
        raise ExportError(
            f"the model's heads are {head_dim} wide; the operators of int8 graphs take {MAX_HEAD_DIM}: take float32"
        )


def require_tokenizer(marian: MarianCheckpoint, report: Callable[[str], None]) -> int:
    """Raise `ExportError` unless the checkpoint can be given text and asked for a language.

    Returns the id of its unknown token. `report` is told of pieces that stand for nothing.
    """
    files = marian.tokenizer_files
    if missing := sorted(set(REQUIRED_TOKENIZER_FILES["marian"]) - files.keys()):
        raise ExportError(f"{marian.source} has no {', '.join(missing)}; a bundle needs the checkpoint's tokenizer")
    if not marian.source_languages or not marian.target_languages:
        raise ExportError(
            f'{marian.source}: tokenizer_config.json names no languages; add "source_lang" and "target_lang" to it'
        )
    vocabulary = _vocabulary(files, VOCABULARY_FILE)
    if UNKNOWN_TOKEN not in vocabulary:
        raise ExportError(
            f"{marian.source}: {VOCABULARY_FILE} has no {UNKNOWN_TOKEN}, "
            "so there is nothing to stand for unknown characters"
        )
    # A token that no embedding stands for would fail in the middle of somebody's request.
    largest, vocab_size = max(vocabulary.values()), marian.config.vocab_size
    if largest >= vocab_size:
        raise ExportError(
            f"{marian.source}: {VOCABULARY_FILE} has a token {largest}, but the weights know {vocab_size} "
            f"tokens, 0 to {vocab_size - 1}"
        )
    target_file = TARGET_VOCABULARY_FILE if TARGET_VOCABULARY_FILE in files else VOCABULARY_FILE
    for sentencepiece_file, vocabulary_file in (
        (SOURCE_SENTENCEPIECE_FILE, VOCABULARY_FILE),
        (TARGET_SENTENCEPIECE_FILE, target_file),
    ):
        _require_pieces(files[sentencepiece_file], _vocabulary(files, vocabulary_file), vocabulary_file, report)
    return vocabulary[UNKNOWN_TOKEN]


def _require_pieces(
    path: Path, vocabulary: Mapping[str, int], vocabulary_file: str, report: Callable[[str], None]
) -> None:
    """Raise `ExportError` unless `path` is a SentencePiece model, most of whose pieces have a number."""
    pieces = _pieces(path)
    missing = [piece for piece in pieces if piece not in vocabulary]
    if not missing:
        return
    found = f"{vocabulary_file} has no number for {len(missing)} of the {len(pieces)} pieces of {path.name}"
    # Marian makes its vocabulary from text, in which rare pieces may not occur, and reads them as unknown.
    if len(missing) > MAX_MISSING_RATIO * len(pieces):
        raise ExportError(f"{path.parent}: {found}; are they of the same model?")
    report(f"{found}, they are read as {UNKNOWN_TOKEN}: {' '.join(missing[:10])}{' ...' if missing[10:] else ''}")


def _pieces(path: Path) -> list[str]:
    """The pieces of a SentencePiece model that stand for text."""
    content = path.read_bytes()
    if not content:
        raise ExportError(f"{path} is empty; a SentencePiece model is needed")
    try:
        model = SentencePieceProcessor(model_proto=content)
    except RuntimeError as error:
        raise ExportError(
            f"{path} is not a SentencePiece model; if it is a pointer of Git LFS, fetch the file (git lfs pull)"
        ) from error
    pieces = [
        model.id_to_piece(piece)
        for piece in range(model.get_piece_size())
        if not (model.is_control(piece) or model.is_unknown(piece) or model.is_unused(piece))
    ]
    if not pieces:
        raise ExportError(f"{path} has no pieces of text")
    return pieces


def _vocabulary(files: Mapping[str, Path], name: str) -> dict[str, int]:
    try:
        content = json.loads(files[name].read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ExportError(f"{files[name]} is not JSON: {error}") from error
    if not isinstance(content, dict) or not all(type(token_id) is int for token_id in content.values()):
        raise ExportError(f"{files[name]} is not a vocabulary: tokens and their ids are needed")
    return content
