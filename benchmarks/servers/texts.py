"""Texts of the other servers: sentences as Kvasir divides them, and their SentencePiece pieces."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import sentencex
from sentencepiece import SentencePieceProcessor

from server.text.segmentation.boundaries import rules_of

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


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence, or the text between two; a sentence has no white space at its ends."""

    text: str
    is_sentence: bool


def split(text: str, language: str, fits: Callable[[str], bool]) -> list[Part]:
    """Return parts whose concatenation is `text`. Kvasir's rules, or `sentencex`, and line breaks end sentences.

    A sentence that does not fit is halved at a space until it does. Text without letters and digits is not a sentence.
    """
    parts: list[Part] = []
    rules = rules_of(language)
    for line in text.splitlines(keepends=True):
        for sentence in sentencex.segment(language, line) if rules is None else rules.sentences(line):
            words = sentence.strip()
            start = sentence.find(words)
            parts.append(Part(sentence[:start], is_sentence=False))
            parts.extend(_pieces(words, fits))
            parts.append(Part(sentence[start + len(words) :], is_sentence=False))
    return [part for part in parts if part.text]


def join(parts: Sequence[Part], translations: Sequence[str]) -> str:
    """Return the text with its sentences replaced by `translations`, which must have the same number."""
    remaining = iter(translations)
    joined = "".join(next(remaining) if part.is_sentence else part.text for part in parts)
    assert next(remaining, None) is None, "more translations than sentences"
    return joined


def _pieces(sentence: str, fits: Callable[[str], bool]) -> Iterator[Part]:
    if not any(map(str.isalnum, sentence)):
        yield Part(sentence, is_sentence=False)
        return
    space = _middle_space(sentence)
    if space is None or fits(sentence):
        yield Part(sentence, is_sentence=True)
        return
    yield from _pieces(sentence[:space].rstrip(), fits)
    yield Part(" ", is_sentence=False)
    yield from _pieces(sentence[space:].lstrip(), fits)


def _middle_space(sentence: str) -> int | None:
    """Return the index of the space nearest to the middle, if any."""
    spaces = (index for index, character in enumerate(sentence) if character == " ")
    return min(spaces, key=lambda index: abs(2 * index - len(sentence)), default=None)
