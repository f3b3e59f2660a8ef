"""Text to SentencePiece pieces and back, as the checkpoint's own tokenizer does it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sentencepiece import SentencePieceProcessor

END = "</s>"
UNKNOWN = "<unk>"
PADDING = "<pad>"

Pieces = list[str]


@dataclass(frozen=True, slots=True)
class TargetLimit:
    """Maximum length of a translation: `factor` times its source plus `slack`, at most the model's limit.

    Greedy search sometimes loops. Without this limit (a `factor` of 0) about one sentence in a hundred takes the
    maximum number of steps, and its whole batch waits for it.
    """

    max_tokens: int
    factor: float
    slack: int = 16

    def of(self, source_tokens: int) -> int:
        """Return the maximum number of target tokens for that many source tokens."""
        return min(self.max_tokens, int(source_tokens * self.factor) + self.slack) if self.factor else self.max_tokens


class Tokenizer:
    """The SentencePiece models of both sides. Thread-safe."""

    def __init__(self, source: Path, target: Path, max_tokens: int) -> None:
        """Read the models. Raises OSError."""
        self._source, self._target = (
            SentencePieceProcessor(model_proto=path.read_bytes()) for path in (source, target)
        )
        self.max_tokens = max_tokens
        """Maximum number of tokens of a source or a target, including its end."""

    @classmethod
    def of_checkpoint(cls, checkpoint: Path) -> Self:
        """Return the tokenizer of a Hugging Face Marian checkpoint. Raises OSError."""
        config = json.loads((checkpoint / "config.json").read_text("utf-8"))
        return cls(checkpoint / "source.spm", checkpoint / "target.spm", int(config["max_position_embeddings"]))

    def encode(self, sentence: str) -> Pieces:
        """Return the tokens of a source sentence, its end last."""
        pieces: Pieces = self._source.encode(sentence, out_type=str)
        return [*pieces, END]

    def fits(self, sentence: str) -> bool:
        """Return whether the sentence fits into the model."""
        # A token has at least one character, so short sentences always fit.
        return len(sentence) < self.max_tokens // 2 or len(self.encode(sentence)) <= self.max_tokens

    def decode(self, pieces: Sequence[str]) -> str:
        """Return the text of a translation without control tokens."""
        text: str = self._target.decode_pieces([piece for piece in pieces if piece not in (END, UNKNOWN, PADDING)])
        return text.replace("▁", " ").strip()
