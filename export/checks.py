"""Requirements of a bundle on a checkpoint: its sizes, its languages and tasks, its tokenizer."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bundle.manifest import (
    BPE_CODES_FILE,
    REQUIRED_TOKENIZER_FILES,
    SOURCE_SENTENCEPIECE_FILE,
    TARGET_SENTENCEPIECE_FILE,
    TARGET_VOCABULARY_FILE,
    TOKENIZER_JSON_FILE,
    VOCABULARY_FILE,
    TokenizerKind,
)
from bundle.tensors import Precision
from bundle.tokenizer_formats import open_json_tokenizer, read_bpe_codes
from kernels.layout import MAX_HEAD_DIM
from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Languages
from model.config import TransformerConfig
from model.families.tokenizers import all_pieces, open_sentencepiece

MIN_TOKENS = 8
"""Shortest maximum of source and target. With fewer tokens the graphs cannot be traced and verified."""
UNKNOWN_TOKEN = "<unk>"  # noqa: S105 - a vocabulary entry, not a secret
MAX_MISSING_RATIO = 0.5
"""Largest share of a SentencePiece model's pieces that a vocabulary can lack; beyond it, they are of two models."""

# ByT5: three control tokens, then the bytes.
_UNKNOWN_OF_BYTES, _NUM_BYTES = 2, 256
_STANDARD_ERROR = 2

Report = Callable[[str], None]


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


def require_tokenizer(checkpoint: Checkpoint, report: Report) -> int:
    """Return the id of the unknown token. Raises `ExportError` if the tokenizer is incomplete or unsuitable.

    `report` receives a warning about pieces that the vocabulary lacks.
    """
    source, kind = checkpoint.provenance.source, checkpoint.tokenizer.kind
    for known, check in CHECKS.items():
        if kind == known:
            present = checkpoint.tokenizer.files.keys() | checkpoint.tokenizer.converted.keys()
            required = {*REQUIRED_TOKENIZER_FILES[known], *([TARGET_SENTENCEPIECE_FILE] if known == "marian" else [])}
            if missing := sorted(required - present):
                raise ExportError(f"{source} has no {', '.join(missing)}; a bundle needs the checkpoint's tokenizer")
            return check(checkpoint, report)
    raise ExportError(f"{source}: the tokenizer kind must be one of {', '.join(CHECKS)}. Given: {kind}")


def without_second_copy(files: Mapping[str, Path]) -> dict[str, Path]:
    """Return files without the SentencePiece model of the target if it equals the one of the source."""
    source, target = (files.get(name) for name in (SOURCE_SENTENCEPIECE_FILE, TARGET_SENTENCEPIECE_FILE))
    is_copy = source is not None and target is not None and source.read_bytes() == target.read_bytes()
    return {name: path for name, path in files.items() if not (is_copy and name == TARGET_SENTENCEPIECE_FILE)}


def _check_marian(checkpoint: Checkpoint, report: Report) -> int:
    source, files = checkpoint.provenance.source, checkpoint.tokenizer.files
    vocabulary = _vocabulary(checkpoint, VOCABULARY_FILE)
    if UNKNOWN_TOKEN not in vocabulary:
        raise ExportError(f"{source}: {VOCABULARY_FILE} has no {UNKNOWN_TOKEN}, the token of unknown characters")
    _require_embeddings(checkpoint, vocabulary)
    target_file = _target_vocabulary_file(checkpoint)
    for sentencepiece_file, vocabulary_file in (
        (SOURCE_SENTENCEPIECE_FILE, VOCABULARY_FILE),
        (TARGET_SENTENCEPIECE_FILE, target_file),
    ):
        _require_pieces(files[sentencepiece_file], _vocabulary(checkpoint, vocabulary_file), vocabulary_file, report)
    return vocabulary[UNKNOWN_TOKEN]


def _check_sentencepiece(checkpoint: Checkpoint, report: Report) -> int:
    vocabulary = _vocabulary(checkpoint, VOCABULARY_FILE)
    _require_pieces(checkpoint.tokenizer.files[SOURCE_SENTENCEPIECE_FILE], vocabulary, VOCABULARY_FILE, report)
    if UNKNOWN_TOKEN not in vocabulary:
        raise ExportError(f"{checkpoint.provenance.source}: the vocabulary has no {UNKNOWN_TOKEN}")
    _require_embeddings(checkpoint, vocabulary)
    return vocabulary[UNKNOWN_TOKEN]


def _check_tokenizer_json(checkpoint: Checkpoint, report: Report) -> int:
    tokenizer, source = checkpoint.tokenizer, checkpoint.provenance.source
    converted = tokenizer.converted.get(TOKENIZER_JSON_FILE)
    content = tokenizer.files[TOKENIZER_JSON_FILE].read_bytes() if converted is None else converted
    try:
        with _discarded_standard_error():
            backend = open_json_tokenizer(content)
    except ValueError as error:
        raise ExportError(
            f"{source}: {TOKENIZER_JSON_FILE} is damaged, or no tokenizer that encodes every text: {error}; "
            "download it again, or remove it if the checkpoint has a SentencePiece model"
        ) from error
    _require_numbers(checkpoint, TOKENIZER_JSON_FILE, backend.get_vocab(with_added_tokens=True).values())
    unknown = backend.token_to_id(UNKNOWN_TOKEN)
    # A byte-level vocabulary needs none.
    return checkpoint.config.pad_token_id if unknown is None else int(unknown)


@contextmanager
def _discarded_standard_error() -> Iterator[None]:
    """Discard what is written to standard error: a panic of Rust writes lines of its own before it is raised."""
    try:
        kept = os.dup(_STANDARD_ERROR)
    except OSError:  # it is closed
        yield
        return
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), _STANDARD_ERROR)
    try:
        yield
    finally:
        os.dup2(kept, _STANDARD_ERROR)
        os.close(kept)


def _check_moses_bpe(checkpoint: Checkpoint, report: Report) -> int:
    codes = checkpoint.tokenizer.files[BPE_CODES_FILE]
    try:
        read_bpe_codes(codes.read_bytes(), codes.name)
    except ValueError as error:
        raise ExportError(f"{checkpoint.provenance.source}: {error}") from error
    vocabulary = _vocabulary(checkpoint, VOCABULARY_FILE)
    if UNKNOWN_TOKEN not in vocabulary:
        raise ExportError(f"{checkpoint.provenance.source}: the vocabulary has no {UNKNOWN_TOKEN}")
    _require_embeddings(checkpoint, vocabulary)
    return vocabulary[UNKNOWN_TOKEN]


def _check_bytes(checkpoint: Checkpoint, report: Report) -> int:
    _require_numbers(checkpoint, "the tokenizer", [_UNKNOWN_OF_BYTES + _NUM_BYTES])
    return _UNKNOWN_OF_BYTES


def _require_embeddings(checkpoint: Checkpoint, vocabulary: Mapping[str, int]) -> None:
    """Raise `ExportError` for tokens of the vocabularies that the weights lack."""
    _require_numbers(checkpoint, VOCABULARY_FILE, vocabulary.values())
    if (target_file := _target_vocabulary_file(checkpoint)) != VOCABULARY_FILE:
        num_targets = checkpoint.config.decoder_shape.vocab_size
        _require_numbers(checkpoint, target_file, _vocabulary(checkpoint, target_file).values(), num_targets)


def _require_numbers(
    checkpoint: Checkpoint, file: str, numbers: Iterable[int], num_embeddings: int | None = None
) -> None:
    # A token without an embedding would fail in the middle of a request.
    size = checkpoint.config.vocab_size if num_embeddings is None else num_embeddings
    if wrong := [number for number in numbers if not 0 <= number < size]:
        raise ExportError(
            f"{checkpoint.provenance.source}: {file} has a token {wrong[0]}, but the weights have {size} tokens, "
            f"0 to {size - 1}"
        )


CHECKS: Mapping[TokenizerKind, Callable[[Checkpoint, Report], int]] = {
    "marian": _check_marian,
    "sentencepiece": _check_sentencepiece,
    "tokenizer_json": _check_tokenizer_json,
    "moses_bpe": _check_moses_bpe,
    "bytes": _check_bytes,
}
"""Each check returns the id of the unknown token."""


def _require_pieces(path: Path, vocabulary: Mapping[str, int], vocabulary_file: str, report: Report) -> None:
    """Raise `ExportError` unless `path` is a SentencePiece model with most of its pieces in the vocabulary."""
    pieces = _pieces(path)
    missing = [piece for piece in pieces if piece not in vocabulary]
    if not missing:
        return
    found = f"{vocabulary_file} lacks {len(missing)} of the {len(pieces)} pieces of {path.name}"
    # Marian builds its vocabulary from text, in which rare pieces may not occur, and reads them as unknown.
    if len(missing) > MAX_MISSING_RATIO * len(pieces):
        raise ExportError(f"{path.parent}: {found}; the files seem to belong to two models")
    report(f"{found}; they become {UNKNOWN_TOKEN}: {' '.join(missing[:10])}{' ...' if missing[10:] else ''}")


def _pieces(path: Path) -> list[str]:
    """Return the pieces of a SentencePiece model without its control pieces."""
    try:
        model = open_sentencepiece(path)
    except CheckpointError as error:
        raise ExportError(str(error)) from error
    pieces = [
        name
        for piece, name in enumerate(all_pieces(model))
        if not (model.is_control(piece) or model.is_unknown(piece) or model.is_unused(piece))
    ]
    if not pieces:
        raise ExportError(f"{path} has no pieces of text")
    return pieces


def _target_vocabulary_file(checkpoint: Checkpoint) -> str:
    tokenizer = checkpoint.tokenizer
    has_one = TARGET_VOCABULARY_FILE in tokenizer.files or TARGET_VOCABULARY_FILE in tokenizer.converted
    return TARGET_VOCABULARY_FILE if has_one else VOCABULARY_FILE


def _vocabulary(checkpoint: Checkpoint, name: str) -> dict[str, int]:
    tokenizer = checkpoint.tokenizer
    origin = str(tokenizer.files.get(name, name))
    try:
        raw = tokenizer.files[name].read_bytes() if name in tokenizer.files else tokenizer.converted[name]
        content = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{origin} is not JSON: {error}") from error
    if not isinstance(content, dict) or not all(type(token_id) is int for token_id in content.values()):
        raise ExportError(f"{origin} is not a vocabulary; an object of tokens and their ids is required")
    return content
