from typing import get_args

from bundle.loading import Bundle
from bundle.tokenizer_files import REQUIRED_TOKENIZER_FILES, TokenizerKind
from server.text.tokenizers.marian import MarianTokenizer
from server.text.tokenizers.registry import TOKENIZERS, open_tokenizer


def test_every_kind_of_the_bundle_format_has_a_tokenizer_and_files() -> None:
    kinds = set(get_args(TokenizerKind))
    assert set(TOKENIZERS) == set(REQUIRED_TOKENIZER_FILES) == kinds


def test_a_bundle_without_a_kind_has_a_marian_tokenizer(default_bundle: Bundle) -> None:
    assert isinstance(open_tokenizer(default_bundle), MarianTokenizer)
