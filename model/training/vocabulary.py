"""One SentencePiece vocabulary for both languages: trained, and text to token ids and back as Marian numbers them."""

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from model.training.tokens import TokenIds

SENTENCEPIECE_FILES = ("source.spm", "target.spm")
VOCABULARY_FILE = "vocab.json"
END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"


class JointVocabulary:
    """Pieces and their numbers; `padding` comes last and is known to the model only."""

    def __init__(self, sentencepiece: bytes, numbers: dict[str, int]) -> None:
        self.sentencepiece = sentencepiece
        self.numbers = numbers
        self.end, self.padding, self.unknown = numbers[END], numbers[PADDING], numbers[UNKNOWN]
        self._processor = SentencePieceProcessor(model_proto=sentencepiece)
        size = self._processor.get_piece_size()
        # [pieces]: the vocabulary's number of each piece
        self._to_number = np.array(
            [numbers.get(self._processor.id_to_piece(piece), self.unknown) for piece in range(size)], dtype=np.int32
        )
        self._to_piece = {int(number): piece for piece, number in enumerate(self._to_number)}

    def __len__(self) -> int:
        return len(self.numbers)

    def encode(self, texts: Sequence[str]) -> list[TokenIds]:
        """Token ids of each text, the end-of-sequence token last."""
        return [
            np.append(self._to_number[np.array(pieces, dtype=np.int64)], np.int32(self.end))
            for pieces in self._processor.encode(list(texts))
        ]

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text of token ids up to the end-of-sequence token; padding and unknown tokens are left out."""
        pieces: list[int] = []
        for token in token_ids:
            if token == self.end:
                break
            if token not in (self.padding, self.unknown):
                pieces.append(self._to_piece[token])
        text: str = self._processor.decode(pieces)
        return text

    def write(self, folder: Path) -> None:
        """The files that a Marian checkpoint has of it: the same pieces for source and target, and their numbers."""
        for name in SENTENCEPIECE_FILES:
            (folder / name).write_bytes(self.sentencepiece)
        (folder / VOCABULARY_FILE).write_text(json.dumps(self.numbers, ensure_ascii=False), "utf-8")


def train_vocabulary(texts: Iterable[str], size: int) -> JointVocabulary:
    """A vocabulary of `size` tokens, padding included, from texts of both languages.

    Byte-pair pieces, with bytes for what is not among them, so that nothing is unknown. Raises ValueError
    if the text has too few different pieces for the size, or too many characters, and whatever `texts` raise.
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
            eos_id=0,
            unk_id=1,
            bos_id=-1,
            pad_id=-1,
            num_threads=1,
            minloglevel=1,
        )
    except RuntimeError as error:
        # It makes its own error of what the text raised.
        raise raised[0] if raised else ValueError(_no_vocabulary(size, str(error))) from error
    processor = SentencePieceProcessor(model_proto=model.getvalue())
    numbers = {processor.id_to_piece(piece): piece for piece in range(processor.get_piece_size())}
    numbers[PADDING] = len(numbers)
    return JointVocabulary(model.getvalue(), numbers)


def _no_vocabulary(size: int, reason: str) -> str:
    """What SentencePiece has against `size`. Its own limits are without padding."""
    if highest := re.search(r"size too high .*<= (\d+)", reason):
        return (
            f"the text has pieces for {int(highest[1]) + 1} tokens at most, and the vocabulary is to have {size}: "
            f"--vocab-size {int(highest[1]) + 1} or less, or more text"
        )
    if lowest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
        return (
            f"the characters of the text alone are more than {size} tokens: --vocab-size {int(lowest[1]) + 1} or more"
        )
    if "sentences_.empty()" in reason:
        return "there is no text to make a vocabulary of"
    return f"SentencePiece makes no vocabulary of {size} tokens (--vocab-size) from this text: {reason}"


def read_vocabulary(folder: Path) -> JointVocabulary:
    """The vocabulary of a checkpoint. Raises ValueError if its source and target are tokenized differently."""
    source, target = ((folder / name).read_bytes() for name in SENTENCEPIECE_FILES)
    if source != target or (folder / "target_vocab.json").exists():
        raise ValueError(f"{folder}: one vocabulary for both languages is needed, this checkpoint has two")
    numbers: dict[str, int] = json.loads((folder / VOCABULARY_FILE).read_text("utf-8"))
    return JointVocabulary(source, numbers)
