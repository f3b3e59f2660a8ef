"""Joint SentencePiece vocabulary of both languages: training, encoding and decoding."""

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from model.training.tokens import TokenIds

SENTENCEPIECE_FILES = ("source.spm", "target.spm")
VOCABULARY_FILE = "vocab.json"
_NORMAL, _UNUSED = ModelProto.SentencePiece.NORMAL, ModelProto.SentencePiece.UNUSED
END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"


class JointVocabulary:
    """SentencePiece pieces and their token ids. `padding` is the last id and not a piece."""

    def __init__(self, sentencepiece: bytes, numbers: dict[str, int]) -> None:
        self.sentencepiece = sentencepiece
        self.numbers = numbers
        self.end, self.padding, self.unknown = numbers[END], numbers[PADDING], numbers[UNKNOWN]
        self._processor = SentencePieceProcessor(model_proto=sentencepiece)
        size = self._processor.get_piece_size()
        # [pieces]: the token id of each piece
        self._to_number = np.array(
            [numbers.get(self._processor.id_to_piece(piece), self.unknown) for piece in range(size)], dtype=np.int32
        )
        self._to_piece = {int(number): piece for piece, number in enumerate(self._to_number)}

    def __len__(self) -> int:
        return len(self.numbers)

    def encode(self, texts: Sequence[str]) -> list[TokenIds]:
        """Return the token ids of each text, the end-of-sequence token last."""
        return [
            np.append(self._to_number[np.array(pieces, dtype=np.int64)], np.int32(self.end))
            for pieces in self._processor.encode(list(texts))
        ]

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text of token ids up to the end-of-sequence token, without padding and unknown tokens."""
        pieces: list[int] = []
        for token in token_ids:
            if token == self.end:
                break
            if token not in (self.padding, self.unknown):
                pieces.append(self._to_piece[token])
        text: str = self._processor.decode(pieces)
        return text

    def splits(self) -> dict[int, list[int]]:
        """Return the tokens that each token can be replaced by; tokens that cannot be split are absent."""
        processor = self._processor
        pieces = {
            processor.id_to_piece(piece): processor.get_score(piece)
            for piece in range(processor.get_piece_size())
            if not (
                processor.is_control(piece)
                or processor.is_unknown(piece)
                or processor.is_byte(piece)
                or processor.is_unused(piece)
            )
        }
        found = {piece: best_split(piece, pieces) for piece in pieces}
        return {self.numbers[piece]: [self.numbers[part] for part in parts] for piece, parts in found.items() if parts}

    def with_split_digits(self) -> "JointVocabulary":
        """Return a vocabulary with the same tokens that encodes every digit as a token of its own.

        SentencePiece resolves unused pieces into those that they were merged from.
        """
        model = ModelProto.FromString(self.sentencepiece)
        for piece in model.pieces:
            if piece.type == _NORMAL and sum(map(str.isdigit, piece.piece)) and len(piece.piece.lstrip("▁")) > 1:
                piece.type = _UNUSED
        return JointVocabulary(model.SerializeToString(), self.numbers)

    def write(self, folder: Path) -> None:
        """Write the tokenizer files of a Marian checkpoint, with the same pieces for source and target."""
        for name in SENTENCEPIECE_FILES:
            (folder / name).write_bytes(self.sentencepiece)
        (folder / VOCABULARY_FILE).write_text(json.dumps(self.numbers, ensure_ascii=False), "utf-8")


def best_split(piece: str, scores: Mapping[str, float]) -> list[str]:
    """Return the fewest other pieces that a piece consists of, of several such the best by their sum of scores."""
    best: list[tuple[int, float, list[str]] | None] = [(0, 0.0, [])]
    for end in range(1, len(piece) + 1):
        found: tuple[int, float, list[str]] | None = None
        for start in range(end):
            before, part = best[start], piece[start:end]
            if before is None or part == piece or part not in scores:
                continue
            candidate = (before[0] + 1, before[1] - scores[part], [*before[2], part])
            if found is None or candidate < found:
                found = candidate
        best.append(found)
    last = best[-1]
    return [] if last is None else last[2]


def train_vocabulary(texts: Iterable[str], size: int, *, split_digits: bool = False) -> JointVocabulary:
    """Train a vocabulary of `size` tokens, padding included, on texts of both languages.

    It has byte-pair pieces, and bytes for all other characters. Raises ValueError if the text has too few different
    pieces for the size, or too many characters; errors of `texts` are raised unchanged.
    """
    model = io.BytesIO()
    raised: list[BaseException] = []

    def read() -> Iterator[str]:
        try:
            yield from texts
        except (Exception, KeyboardInterrupt) as error:
            raised.append(error)
            raise

    try:
        SentencePieceTrainer.train(
            sentence_iterator=read(),
            model_writer=model,
            model_type="bpe",
            vocab_size=size - 1,
            character_coverage=0.9999,
            byte_fallback=True,
            split_digits=split_digits,
            eos_id=0,
            unk_id=1,
            bos_id=-1,
            pad_id=-1,
            num_threads=1,
            minloglevel=1,
        )
    except RuntimeError as error:
        # SentencePiece replaces errors of the iterator by its own.
        raise raised[0] if raised else ValueError(_no_vocabulary(size, str(error))) from error
    processor = SentencePieceProcessor(model_proto=model.getvalue())
    numbers = {processor.id_to_piece(piece): piece for piece in range(processor.get_piece_size())}
    numbers[PADDING] = len(numbers)
    return JointVocabulary(model.getvalue(), numbers)


def _no_vocabulary(size: int, reason: str) -> str:
    """Return the message for an error of SentencePiece about `size`. SentencePiece counts without padding."""
    if highest := re.search(r"size too high .*<= (\d+)", reason):
        return (
            f"the text has pieces for at most {int(highest[1]) + 1} tokens. Given: {size}; "
            f"use --vocab-size {int(highest[1]) + 1} or less, or add text"
        )
    if lowest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
        return (
            f"the text has more different characters than the vocabulary has tokens. Given: {size}; "
            f"use --vocab-size {int(lowest[1]) + 1} or more"
        )
    if "sentences_.empty()" in reason:
        return "there is no text to train a vocabulary on"
    return f"SentencePiece cannot train a vocabulary of {size} tokens (--vocab-size) on this text: {reason}"


def read_vocabulary(folder: Path) -> JointVocabulary:
    """Read the vocabulary of a checkpoint. Raises ValueError if source and target have different ones."""
    source, target = ((folder / name).read_bytes() for name in SENTENCEPIECE_FILES)
    if source != target or (folder / "target_vocab.json").exists():
        raise ValueError(f"{folder} must have one vocabulary for both languages. Given: 2")
    numbers: dict[str, int] = json.loads((folder / VOCABULARY_FILE).read_text("utf-8"))
    return JointVocabulary(source, numbers)
