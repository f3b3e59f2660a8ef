"""Tokenizer kinds, and the tokenizer of a bundle."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from bundle.loading import Bundle
from bundle.manifest import BundleError, TokenizerKind
from server.interface.word_tokens import WordTokens
from server.text.tokenizers.base import read_vocabularies
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.tokenizers.word_tokens import word_tokens

# Where each kind is implemented: two need the package `tokenizers`, which others do without.
TOKENIZERS: Final[Mapping[TokenizerKind, tuple[str, str]]] = {
    "marian": ("marian", "MarianTokenizer"),
    "sentencepiece": ("marian", "MarianTokenizer"),
    "tokenizer_json": ("tokenizer_json", "JsonTokenizer"),
    "moses_bpe": ("moses_bpe", "MosesBpeTokenizer"),
    "bytes": ("byte_tokens", "ByteTokenizer"),
}

_NUMBERED: Final = ("marian", "sentencepiece", "moses_bpe")  # kinds with a vocabulary in files of its own
_MAX_REASON_CHARACTERS = 300


def open_tokenizer(bundle: Bundle) -> Tokenizer:
    """Return the tokenizer of a bundle. Raises `BundleError` for files that are damaged or belong to another model."""
    with _reading(bundle):
        module, name = TOKENIZERS[bundle.config.tokenizer.kind]
        kind: Callable[[Bundle], Tokenizer] = getattr(import_module(f"server.text.tokenizers.{module}"), name)
        return kind(bundle)


def word_tokens_of(bundle: Bundle) -> WordTokens:
    """Return the target tokens of a bundle that continue a word. Raises `BundleError`, as `open_tokenizer` does."""
    size = bundle.config.shapes.target_vocab_size
    if bundle.config.tokenizer.kind in _NUMBERED:
        # A tokenizer of 32,000 pieces takes 110 ms, and an engine needs their names only.
        with _reading(bundle):
            _, vocabulary = read_vocabularies(bundle)
        names = {id_: piece for piece, id_ in vocabulary.items()}
        pieces = [names.get(id_, "") for id_ in range(size)]
    else:
        pieces = open_tokenizer(bundle).target_pieces(range(size))
    return word_tokens(pieces, bundle.config.target_languages)


@contextmanager
def _reading(bundle: Bundle) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the libraries do not document their errors
        reason = f"{type(error).__name__}: {error}"[:_MAX_REASON_CHARACTERS]
        raise BundleError(f"{bundle.path}: the tokenizer files cannot be read: {reason}") from error
