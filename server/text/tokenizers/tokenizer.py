"""Interface of a tokenizer: text to token ids and back."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Tokenizer(Protocol):
    """Tokenizer of one bundle. Thread-safe.

    No text can produce a control token: `</s>` in a text is encoded as the characters it consists of.
    """

    @property
    def end_token(self) -> int:
        """The end-of-sequence token."""

    @property
    def unknown_token(self) -> int:
        """The token of pieces that the vocabulary lacks."""

    @property
    def known_characters(self) -> frozenset[str]:
        """Characters of the source vocabulary, and control characters that the tokenizer drops or reads as a blank.

        A character that is only covered by byte tokens is not among them: models seldom reproduce it.
        """

    def encode(
        self, text: str, target_language: str | None = None, source_language: str | None = None
    ) -> NDArray[np.int32]:
        """Return the token ids [source_len] of `text` with the control tokens of a source, usually the end.

        Lone surrogates are read as U+FFFD. A model with several languages has tokens, or a prompt, of the languages.
        """

    def encode_target(self, text: str) -> list[int]:
        """Return the token ids of `text` as a translation, without the end-of-sequence token."""

    def count_tokens(self, text: str) -> int:
        """Return the length of the longest `encode` in any language."""

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of generated `token_ids`, without control tokens and unknown tokens."""

    def decode_beginning(self, token_ids: Sequence[int]) -> str:
        """Return the text with which every translation that begins with `token_ids` begins.

        It lacks the bytes of a character whose other bytes are not generated yet.
        """

    def source_pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Return the vocabulary entry of each source token."""

    def target_pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Return the vocabulary entry of each target token."""

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character range of `text` that each token of `encode` covers, the end-of-sequence token included.

        Ranges are approximate where the tokenizer replaces characters before it splits (NFKC).
        """

    def target_spans(self, token_ids: Sequence[int], text: str) -> list[tuple[int, int]]:
        """Return the character range of `text`, decoded from `token_ids`, that each token covers."""
