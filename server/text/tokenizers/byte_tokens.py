"""Tokenizer of kind `bytes`: a token for each byte of UTF-8, as in ByT5."""

import codecs
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise

from bundle.loading import Bundle
from server.text.tokenizers.base import BaseTokenizer
from server.text.unicode_text import replace_lone_surrogates

# Padding, the end of the sequence and the unknown token come before the bytes.
_FIRST_BYTE = 3
_NUM_BYTES = 256


class ByteTokenizer(BaseTokenizer):
    """Bytes of UTF-8; implements `Tokenizer`. Equal to Hugging Face `ByT5Tokenizer`. Thread-safe."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle.config)

    @property
    def known_characters(self) -> frozenset[str]:
        """All assigned characters of the first two planes: a model that reads bytes reads them all."""
        return _assigned_characters()

    def encode_target(self, text: str) -> list[int]:
        """Return the token ids of `text` as a translation, without the end-of-sequence token."""
        return [byte + _FIRST_BYTE for byte in replace_lone_surrogates(text).encode()]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of generated `token_ids`, without control tokens and bytes that are not UTF-8."""
        return _bytes(token_ids).decode(errors="ignore")

    def decode_beginning(self, token_ids: Sequence[int]) -> str:
        """Return the text with which every translation that begins with `token_ids` begins."""
        return codecs.getincrementaldecoder("utf-8")(errors="ignore").decode(_bytes(token_ids))

    def source_pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Return the character of each byte, from U+0000 to U+00FF; nothing for control tokens."""
        return [chr(id_ - _FIRST_BYTE) if _is_byte(id_) else "" for id_ in token_ids]

    target_pieces = source_pieces

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character of `text` to which each byte belongs, as a range."""
        spans = [
            (index, index + 1)
            for index, character in enumerate(replace_lone_surrogates(text))
            for _ in character.encode()
        ]
        return self._within_template(spans, text)

    def target_spans(self, token_ids: Sequence[int], text: str) -> list[tuple[int, int]]:
        """Return the character range of `text`, decoded from `token_ids`, that each token covers."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        lengths = (len(decoder.decode(_bytes([id_]))) for id_ in token_ids)
        return list(pairwise(accumulate(lengths, initial=0)))

    def _text_ids(self, text: str, *, has_prompt: bool = False) -> Sequence[int]:
        return self.encode_target(text)


@cache
def _assigned_characters() -> frozenset[str]:
    every = map(chr, range(0x20000))
    return frozenset(each for each in every if unicodedata.category(each) not in ("Cn", "Co", "Cs"))


def _is_byte(id_: int) -> bool:
    return _FIRST_BYTE <= id_ < _FIRST_BYTE + _NUM_BYTES


def _bytes(token_ids: Sequence[int]) -> bytes:
    return bytes(id_ - _FIRST_BYTE for id_ in token_ids if _is_byte(id_))
