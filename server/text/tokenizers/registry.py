"""Tokenizer kinds, and the tokenizer of a bundle."""

from collections.abc import Callable, Mapping
from typing import Final

from bundle.loading import Bundle
from bundle.manifest import BundleError
from bundle.tokenizer_files import TokenizerKind
from server.interface.word_tokens import WordTokens
from server.text.tokenizers.byte_tokens import ByteTokenizer
from server.text.tokenizers.marian import MarianTokenizer
from server.text.tokenizers.moses_bpe import MosesBpeTokenizer
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.tokenizers.tokenizer_json import JsonTokenizer
from server.text.tokenizers.word_tokens import word_tokens

TOKENIZERS: Final[Mapping[TokenizerKind, Callable[[Bundle], Tokenizer]]] = {
    "marian": MarianTokenizer,
    "sentencepiece": MarianTokenizer,
    "tokenizer_json": JsonTokenizer,
    "moses_bpe": MosesBpeTokenizer,
    "bytes": ByteTokenizer,
}

_MAX_REASON_CHARACTERS = 300


def open_tokenizer(bundle: Bundle) -> Tokenizer:
    """Return the tokenizer of a bundle. Raises `BundleError` for files that are damaged or belong to another model."""
    try:
        return TOKENIZERS[bundle.config.tokenizer.kind](bundle)
    except Exception as error:  # the libraries do not document their errors
        reason = f"{type(error).__name__}: {error}"[:_MAX_REASON_CHARACTERS]
        raise BundleError(f"{bundle.path}: the tokenizer files cannot be read: {reason}") from error


def word_tokens_of(bundle: Bundle) -> WordTokens:
    """Return the target tokens of a bundle that continue a word."""
    pieces = open_tokenizer(bundle).target_pieces(range(bundle.config.shapes.target_vocab_size))
    return word_tokens(pieces, bundle.config.target_languages)
