"""Joint SentencePiece vocabulary of both languages: training, encoding and decoding."""

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from model.checkpoints.hugging_face_files import read_settings
from model.checkpoints.language_codes import language_code
from model.families.marian.hugging_face import language_tokens
from model.families.tokenizers import open_sentencepiece

TokenIds = NDArray[np.int32]

SENTENCEPIECE_FILES = ("source.spm", "target.spm")
VOCABULARY_FILE = "vocab.json"
_BUNDLE_MANIFEST = "bundle.json"
_NORMAL, _UNUSED = ModelProto.SentencePiece.NORMAL, ModelProto.SentencePiece.UNUSED
END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"


class SentencePieces:
    """One SentencePiece model, and the token ids of its pieces."""

    def __init__(self, content: bytes, numbers: Mapping[str, int]) -> None:
        self.content = content
        self.processor = SentencePieceProcessor(model_proto=content)
        unknown = numbers[UNKNOWN]
        # [pieces]: the token id of each piece
        self._to_number = np.array(
            [
                numbers.get(self.processor.id_to_piece(piece), unknown)
                for piece in range(self.processor.get_piece_size())
            ],
            dtype=np.int32,
        )

    def encode(self, texts: Sequence[str], before: Sequence[int], end: int) -> list[TokenIds]:
        """Return the token ids of each text between those `before` it and the `end`."""
        around = np.array(before, dtype=np.int32), np.array([end], dtype=np.int32)
        return [
            np.concatenate([around[0], self._to_number[np.array(pieces, dtype=np.int64)], around[1]])
            for pieces in self.processor.encode(list(texts))
        ]

    def scores(self) -> dict[str, float]:
        """Return the scores of the pieces that stand for text as it is."""
        processor = self.processor
        other = processor.is_control, processor.is_unknown, processor.is_byte, processor.is_unused
        return {
            processor.id_to_piece(piece): processor.get_score(piece)
            for piece in range(processor.get_piece_size())
            if not any(is_other(piece) for is_other in other)
        }

    def with_split_digits(self) -> bytes:
        """Return a model that encodes every digit as a piece of its own.

        SentencePiece resolves unused pieces into those that they were merged from.
        """
        model = ModelProto.FromString(self.content)
        for piece in model.pieces:
            if piece.type == _NORMAL and sum(map(str.isdigit, piece.piece)) and len(piece.piece.lstrip("▁")) > 1:
                piece.type = _UNUSED
        content: bytes = model.SerializeToString()
        return content


class JointVocabulary:
    """Token ids of both languages. Source and target can have SentencePiece models of their own, as in OPUS-MT.

    `prefix` is the token of the target language, which begins a source in models with several targets.
    """

    def __init__(
        self,
        sentencepiece: bytes,
        numbers: dict[str, int],
        target_sentencepiece: bytes | None = None,
        prefix: int | None = None,
    ) -> None:
        self.numbers = numbers
        self.end, self.padding, self.unknown = numbers[END], numbers[PADDING], numbers[UNKNOWN]
        self._source = SentencePieces(sentencepiece, numbers)
        self._target = self._source
        if target_sentencepiece not in (None, sentencepiece):
            self._target = SentencePieces(target_sentencepiece, numbers)
        self._before = () if prefix is None else (prefix,)
        self._pieces = {number: piece for piece, number in numbers.items()}

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def sentencepiece(self) -> bytes:
        """The SentencePiece model of the source."""
        return self._source.content

    def encode(self, texts: Sequence[str]) -> list[TokenIds]:
        """Return the token ids of each source, the end-of-sequence token last."""
        return self._source.encode(texts, self._before, self.end)

    def encode_targets(self, texts: Sequence[str]) -> list[TokenIds]:
        """Return the token ids of each target, the end-of-sequence token last."""
        return self._target.encode(texts, (), self.end)

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text of a target up to the end-of-sequence token, without padding and unknown tokens."""
        pieces: list[str] = []
        for token in token_ids:
            if token == self.end:
                break
            if token not in (self.padding, self.unknown):
                pieces.append(self._pieces[int(token)])
        text: str = self._target.processor.decode(pieces)
        return text

    def splits(self) -> dict[int, list[int]]:
        """Return the tokens that each token of a source can be replaced by; tokens that cannot be split are absent."""
        scores = {piece: score for piece, score in self._source.scores().items() if piece in self.numbers}
        found = {piece: best_split(piece, scores) for piece in scores}
        return {self.numbers[piece]: [self.numbers[part] for part in parts] for piece, parts in found.items() if parts}

    def with_split_digits(self) -> "JointVocabulary":
        """Return a vocabulary with the same tokens that encodes every digit as a token of its own."""
        models = (pieces.with_split_digits() for pieces in (self._source, self._target))
        return JointVocabulary(next(models), self.numbers, next(models), next(iter(self._before), None))

    def write(self, folder: Path) -> None:
        """Write the tokenizer files of a Marian checkpoint."""
        for name, pieces in zip(SENTENCEPIECE_FILES, (self._source, self._target), strict=True):
            (folder / name).write_bytes(pieces.content)
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


def read_vocabulary(folder: Path, target_language: str | None = None) -> JointVocabulary:
    """Read the vocabulary of a checkpoint.

    A model with several targets requires the `target_language`. Raises ValueError if it does not have that language,
    if source and target have different token ids, or if a file is damaged.
    """
    if (folder / "target_vocab.json").exists():
        raise ValueError(f"{folder} must have one vocabulary for both languages. Given: 2")
    source_file, target_file = (folder / name for name in SENTENCEPIECE_FILES)
    if (folder / _BUNDLE_MANIFEST).is_file() and not target_file.is_file():
        target_file = source_file  # a bundle contains equal files once
    if missing := [file for file in (source_file, target_file, folder / VOCABULARY_FILE) if not file.is_file()]:
        raise ValueError(f"{missing[0]} is missing; training requires a Marian checkpoint or its bundle")
    for file in (source_file, target_file):
        open_sentencepiece(file)
    source, target = source_file.read_bytes(), target_file.read_bytes()
    settings = read_settings(folder / VOCABULARY_FILE)
    numbers = {piece: settings.integer(piece) for piece in (*settings.values, END, UNKNOWN, PADDING)}
    prefixes = language_tokens(numbers)
    if target_language is None or not prefixes:
        return JointVocabulary(source, numbers, target)
    code = language_code(target_language)
    if code not in prefixes:
        raise ValueError(f"{folder} must have the target {target_language}. Given: {', '.join(sorted(prefixes))}")
    return JointVocabulary(source, numbers, target, numbers[prefixes[code]])
