import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from bundle.loading import Bundle
from bundle.manifest import REQUIRED_TOKENIZER_FILES, BundleError, TokenizerKind
from server.text.tokenizers.marian import MarianTokenizer
from server.text.tokenizers.registry import TOKENIZERS, open_tokenizer, word_tokens_of
from server.text.tokenizers.word_tokens import word_tokens


def test_every_kind_of_the_bundle_format_has_a_tokenizer_and_files() -> None:
    kinds = set(get_args(TokenizerKind))
    assert set(TOKENIZERS) == set(REQUIRED_TOKENIZER_FILES) == kinds


def test_a_bundle_without_a_kind_has_a_marian_tokenizer(default_bundle: Bundle) -> None:
    assert isinstance(open_tokenizer(default_bundle), MarianTokenizer)


def test_a_tokenizer_that_panics_is_an_error_of_its_bundle(default_bundle: Bundle, tmp_path: Path) -> None:
    model = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
    content = {
        "version": "1.0",
        "added_tokens": [],
        "model": model,
        "pre_tokenizer": {"type": "FixedLength", "length": 0},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    tokenizer = default_bundle.config.tokenizer.model_copy(update={"kind": "tokenizer_json"})
    config = default_bundle.config.model_copy(update={"tokenizer": tokenizer})
    with pytest.raises(
        BundleError, match="the tokenizer files cannot be read: ValueError: chunk size must be non-zero"
    ):
        open_tokenizer(replace(default_bundle, path=tmp_path, config=config))


def test_words_need_the_vocabulary_only(default_bundle: Bundle, tmp_path: Path) -> None:
    config = default_bundle.config
    pieces = open_tokenizer(default_bundle).target_pieces(range(config.shapes.target_vocab_size))
    vocabulary = shutil.copy(default_bundle.file("vocab.json"), tmp_path)
    copied = replace(default_bundle, path=tmp_path)
    assert word_tokens_of(copied) == word_tokens(pieces, config.target_languages)
    Path(vocabulary).write_text("{")
    with pytest.raises(BundleError, match="the tokenizer files cannot be read: JSONDecodeError"):
        word_tokens_of(copied)
