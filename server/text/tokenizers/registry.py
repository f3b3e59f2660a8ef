"""Tokenizer kinds, and the tokenizer of a bundle."""

from collections.abc import Callable, Mapping
from typing import Final

from bundle.loading import Bundle
from bundle.tokenizer_files import TokenizerKind
from server.text.tokenizers.marian import MarianTokenizer
from server.text.tokenizers.tokenizer import Tokenizer

TOKENIZERS: Final[Mapping[TokenizerKind, Callable[[Bundle], Tokenizer]]] = {"marian": MarianTokenizer}


def open_tokenizer(bundle: Bundle) -> Tokenizer:
    """Return the tokenizer of a bundle."""
    return TOKENIZERS[bundle.config.tokenizer.kind](bundle)
