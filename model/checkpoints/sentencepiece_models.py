"""SentencePiece models of a checkpoint."""

from pathlib import Path

from sentencepiece import SentencePieceProcessor

from model.checkpoints.errors import CheckpointError


def open_sentencepiece(path: Path) -> SentencePieceProcessor:
    """Return the SentencePiece model in a file. Raises `CheckpointError` if it is empty, damaged or another file."""
    content = path.read_bytes()
    if not content:
        raise CheckpointError(f"{path} is empty; a SentencePiece model is required")
    try:
        model = SentencePieceProcessor(model_proto=content)
        all_pieces(model)
    except (RuntimeError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{path} is not a SentencePiece model, or damaged; if it is a pointer of Git LFS, fetch the file "
            "(git lfs pull), otherwise download it again"
        ) from error
    return model


def all_pieces(model: SentencePieceProcessor) -> list[str]:
    """Return the pieces of a model in the order of their numbers."""
    return [model.id_to_piece(piece) for piece in range(model.get_piece_size())]
