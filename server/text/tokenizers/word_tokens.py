"""Words in vocabularies: tokens that continue one."""

from collections.abc import Collection, Sequence

import regex

from server.interface.word_tokens import NO_WORDS, WordTokens
from server.text.language_tables import table_of

_WORD_MARKS = ("\u2581", "\u0120")  # SentencePiece and byte-level BPE mark the first token of a word
# Not those of languages without spaces: a word may begin with any of them.
_CONTINUES = regex.compile(r"(?![\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])[\p{L}\p{M}\p{N}]")


def word_tokens(pieces: Sequence[str], languages: Collection[str]) -> WordTokens:
    """Return the indices of pieces that continue a word of these languages; none if words have no marks."""
    if not any(piece.startswith(_WORD_MARKS) for piece in pieces):
        return NO_WORDS
    continuations = frozenset(
        index for index, piece in enumerate(pieces) if not piece.startswith(_WORD_MARKS) and _CONTINUES.match(piece)
    )
    endings = set().union(*map(endings_of, languages))
    return WordTokens(continuations, frozenset(index for index in continuations if pieces[index] in endings))


def endings_of(language: str) -> Sequence[str]:
    """Return the endings of inflected words of a language; none if they are unknown."""
    return table_of(language).endings
