"""Kinds of tokenizers, and the files of each in a bundle."""

from collections.abc import Mapping
from typing import Final, Literal

TokenizerKind = Literal["marian"]
"""`marian`: two SentencePiece models whose pieces a vocabulary numbers."""

SOURCE_SENTENCEPIECE_FILE = "source.spm"
TARGET_SENTENCEPIECE_FILE = "target.spm"
VOCABULARY_FILE = "vocab.json"
TARGET_VOCABULARY_FILE = "target_vocab.json"  # optional; without it the target has the vocabulary of the source

REQUIRED_TOKENIZER_FILES: Final[Mapping[TokenizerKind, tuple[str, ...]]] = {
    "marian": (SOURCE_SENTENCEPIECE_FILE, TARGET_SENTENCEPIECE_FILE, VOCABULARY_FILE),
}
