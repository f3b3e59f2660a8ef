"""Tokens of a target vocabulary that continue a word."""

from collections.abc import Sequence

import regex

_WORD_MARKS = ("\u2581", "\u0120")  # SentencePiece and byte-level BPE mark the first token of a word
# Not those of languages without spaces: a word may begin with any of them.
_CONTINUES = regex.compile(r"(?![\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])[\p{L}\p{M}\p{N}]")


def continuation_tokens(pieces: Sequence[str]) -> frozenset[int]:
    """Return the indices of pieces that continue a word; none if the vocabulary does not mark beginnings."""
    if not any(piece.startswith(_WORD_MARKS) for piece in pieces):
        return frozenset()
    return frozenset(
        index for index, piece in enumerate(pieces) if _CONTINUES.match(piece) and not piece.startswith(_WORD_MARKS)
    )
