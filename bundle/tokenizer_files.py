"""Kinds of tokenizers, and the files of each in a bundle."""

from collections.abc import Mapping
from typing import Final, Literal

TokenizerKind = Literal["marian", "sentencepiece", "tokenizer_json", "moses_bpe", "bytes"]
"""`marian`: SentencePiece models of source and target, whose pieces a vocabulary numbers. `sentencepiece`: one model.

`tokenizer_json`: the format of the package `tokenizers`. `moses_bpe`: merges of subword-nmt within words of Moses'
tokenizer, which a vocabulary numbers. `bytes`: a token for each byte of UTF-8, without files.
"""

SOURCE_SENTENCEPIECE_FILE = "source.spm"
TARGET_SENTENCEPIECE_FILE = "target.spm"  # optional; without it the target has the SentencePiece model of the source
VOCABULARY_FILE = "vocab.json"
TOKENIZER_JSON_FILE = "tokenizer.json"
BPE_CODES_FILE = "bpe.model"
TARGET_VOCABULARY_FILE = "target_vocab.json"  # optional; without it the target has the vocabulary of the source

REQUIRED_TOKENIZER_FILES: Final[Mapping[TokenizerKind, tuple[str, ...]]] = {
    "marian": (SOURCE_SENTENCEPIECE_FILE, VOCABULARY_FILE),
    "sentencepiece": (SOURCE_SENTENCEPIECE_FILE, VOCABULARY_FILE),
    "tokenizer_json": (TOKENIZER_JSON_FILE,),
    "moses_bpe": (BPE_CODES_FILE, VOCABULARY_FILE),
    "bytes": (),
}
