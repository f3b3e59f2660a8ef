"""Tokenizer kinds, and the tokenizer of a bundle."""

from collections.abc import Callable, Mapping
from typing import Final

from bundle.loading import Bundle
from bundle.tokenizer_files import TokenizerKind
from server.text.tokenizers.byte_tokens import ByteTokenizer
from server.text.tokenizers.marian import MarianTokenizer
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.tokenizers.tokenizer_json import JsonTokenizer
from server.text.tokenizers.word_tokens import continuation_tokens

TOKENIZERS: Final[Mapping[TokenizerKind, Callable[[Bundle], Tokenizer]]] = {
    "marian": MarianTokenizer,
    "sentencepiece": MarianTokenizer,
    "tokenizer_json": JsonTokenizer,
    "bytes": ByteTokenizer,
}


def open_tokenizer(bundle: Bundle) -> Tokenizer:
    """Return the tokenizer of a bundle."""
    return TOKENIZERS[bundle.config.tokenizer.kind](bundle)


def continuation_tokens_of(bundle: Bundle) -> frozenset[int]:
    """Return the target tokens of a bundle that continue a word."""
    return continuation_tokens(open_tokenizer(bundle).target_pieces(range(bundle.config.shapes.target_vocab_size)))
