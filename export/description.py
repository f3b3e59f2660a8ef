"""What `bundle.json` says of a Marian checkpoint, and what the checkpoint must have for it."""

import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from export import bundle as names
from export.attention import padded_head_dim
from export.bundle import BundleConfig, Layout, Precision, Shapes
from kernels.layout import MAX_HEAD_DIM
from model.checkpoints.marian import MarianCheckpoint
from model.config import TransformerConfig

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
    required = set(names.REQUIRED_FILES) - {names.ENCODER_FILE, names.DECODER_FILE}
    if missing := sorted(required - files.keys()):
        raise ExportError(f"{marian.source} has no {', '.join(missing)}; a bundle needs the checkpoint's tokenizer")
    if not marian.source_languages or not marian.target_languages:
        raise ExportError(
            f'{marian.source}: tokenizer_config.json names no languages; add "source_lang" and "target_lang" to it'
        )
    vocabulary = _vocabulary(files, names.VOCABULARY_FILE)
    if UNKNOWN_TOKEN not in vocabulary:
        raise ExportError(
            f"{marian.source}: {names.VOCABULARY_FILE} has no {UNKNOWN_TOKEN}, "
            "so there is nothing to stand for unknown characters"
        )
    # A token that no embedding stands for would fail in the middle of somebody's request.
    largest, vocab_size = max(vocabulary.values()), marian.config.vocab_size
    if largest >= vocab_size:
        raise ExportError(
            f"{marian.source}: {names.VOCABULARY_FILE} has a token {largest}, but the weights know {vocab_size} "
            f"tokens, 0 to {vocab_size - 1}"
        )
    target_file = names.TARGET_VOCABULARY_FILE if names.TARGET_VOCABULARY_FILE in files else names.VOCABULARY_FILE
    for sentencepiece_file, vocabulary_file in (
        (names.SOURCE_SENTENCEPIECE_FILE, names.VOCABULARY_FILE),
        (names.TARGET_SENTENCEPIECE_FILE, target_file),
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


def describe_shapes(config: TransformerConfig) -> Shapes:
    """The sizes of the graphs that are exported from a model of this configuration."""
    shape = config.decoder_shape
    return Shapes(
        vocab_size=config.vocab_size,
        target_vocab_size=shape.vocab_size,
        d_model=config.d_model,
        num_encoder_layers=config.num_encoder_layers,
        num_decoder_layers=config.num_decoder_layers,
        num_heads=shape.num_heads,
        head_dim=padded_head_dim(shape.head_dim),
        max_source_tokens=config.max_source_tokens,
        max_target_tokens=config.max_target_tokens,
    )


def describe_bundle(
    marian: MarianCheckpoint, folder: Path, precision: Precision, name: str, unknown_token_id: int
) -> BundleConfig:
    """The description of the files in `folder`, exported from a checkpoint."""
    config = marian.config
    num_layers = config.num_decoder_layers
    layout: Layout = "parts" if (folder / names.MOVE_FILE).exists() else "step"
    return BundleConfig(
        name=name,
        source_languages=marian.source_languages,
        target_languages=marian.target_languages,
        target_language_tokens=dict(marian.target_language_tokens),
        precision=precision,
        layout=layout,
        shapes=describe_shapes(config),
        attention_scale=config.decoder_shape.head_dim**-0.5,
        special_tokens=names.SpecialTokens(
            end_of_sequence=config.eos_token_id,
            padding=config.pad_token_id,
            decoder_start=config.decoder_start_token_id,
            unknown=unknown_token_id,
            suppressed=config.suppressed_token_ids,
            forced_end=config.forced_eos,
        ),
        encoder_inputs=(
            names.SOURCE_TOKENS,
            names.SOURCE_LENGTHS,
            *([names.SOURCE_WIDTH] if layout == "parts" else []),
        ),
        encoder_outputs=(names.CROSS_KEYS_VALUES,),
        decoder_inputs=names.decoder_input_names(num_layers, layout),
        decoder_outputs=names.decoder_output_names(
            num_layers, layout, has_suppressed=bool(config.suppressed_token_ids)
        ),
        provenance=names.Provenance(
            source=marian.source,
            family="marian",
            weights_sha256=marian.weights_sha256,
            num_parameters=sum(parameter.numel() for parameter in marian.model.parameters()),
            exporter=f"kvasir {version('kvasir')}",
        ),
        files={path.name: names.record_file(path) for path in sorted(folder.iterdir())},
    )
