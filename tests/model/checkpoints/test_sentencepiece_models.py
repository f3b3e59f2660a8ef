from pathlib import Path

import pytest
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from model.checkpoints.checkpoint import CheckpointError
from model.families.tokenizers import all_pieces, open_sentencepiece

_PIECES = (("<unk>", 2), ("<s>", 3), ("▁", 1), ("river", 1))


def _model() -> ModelProto:
    model = ModelProto()
    for index, (piece, kind) in enumerate(_PIECES):
        model.pieces.add(piece=piece, type=kind, score=-index)
    return model


def test_the_pieces_of_a_model_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "source.spm"
    path.write_bytes(_model().SerializeToString())
    assert all_pieces(open_sentencepiece(path)) == [piece for piece, _ in _PIECES]


def _rules(trie: bytes) -> bytes:
    """Return a model whose rules for characters are a trie that leads out of itself, and a text."""
    model = _model()
    model.normalizer_spec.precompiled_charsmap = len(trie).to_bytes(4, "little") + trie + b"text\0"
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize(
    "content",
    [
        b"garbage",
        b"\x0a\xff\xff\xff\xff\x07river",  # a piece of 2 GB
        _model().SerializeToString()[:-3],
        _model().SerializeToString().replace(b"river", b"\xffiver"),
        ModelProto().SerializeToString() + b"\x12\x00",
        _rules(b"\xff" * 1024),  # ended the process before SentencePiece 0.2.2
        _rules(b"\xff" * 1000),
    ],
    ids=["text", "huge", "cut", "not-utf8", "empty", "trie", "size"],
)
def test_a_damaged_model_is_an_error_that_names_the_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "source.spm"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"source\.spm is not a SentencePiece model, or damaged; .*git lfs pull"):
        open_sentencepiece(path)
