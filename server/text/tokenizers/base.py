"""Members that the kinds of tokenizers share."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bundle.loading import Bundle
from bundle.manifest import TARGET_VOCABULARY_FILE, VOCABULARY_FILE, BundleConfig
from server.text.tokenizers.source_template import SourceTemplate

Vocabulary = dict[str, int]
"""Token ids of pieces."""


class BaseTokenizer(ABC):
    """A tokenizer whose sources are the tokens of a text within a template. Implements a part of `Tokenizer`."""

    def __init__(self, config: BundleConfig) -> None:
        self._end_of_sequence, self._unknown = config.special_tokens.end_of_sequence, config.special_tokens.unknown
        self._template = SourceTemplate(config)

    @property
    def end_token(self) -> int:
        """The end-of-sequence token."""
        return self._end_of_sequence

    @property
    def unknown_token(self) -> int:
        """The token of pieces that the vocabulary lacks."""
        return self._unknown

    def encode(
        self, text: str, target_language: str | None = None, source_language: str | None = None
    ) -> NDArray[np.int32]:
        """Return the token ids [source_len] of `text` with the control tokens of a source, usually the end.

        Lone surrogates are read as U+FFFD. A model with several languages has tokens, or a prompt, of the languages.
        """
        prompt = self._template.prompt(target_language)
        return self._template.source(self._text_ids(prompt + text, has_prompt=bool(prompt)), source_language)

    def encode_all(
        self, texts: Sequence[str], target_language: str | None = None, source_language: str | None = None
    ) -> list[NDArray[np.int32]]:
        """Return what `encode` returns of each text."""
        return [self.encode(text, target_language, source_language) for text in texts]

    def count_tokens(self, text: str) -> int:
        """Return the length of the longest `encode` in any language."""
        return len(self._text_ids(self._template.longest_prompt + text)) + self._template.num_added

    @abstractmethod
    def _text_ids(self, text: str, *, has_prompt: bool = False) -> Sequence[int]:
        """Return the ids of the text of a source, which begins with a prompt if `has_prompt`."""

    def _within_template(self, spans: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
        """Return ranges of `text` with empty ones for the tokens that the template adds."""
        num_before = self._template.num_before
        num_after = self._template.num_added - num_before
        return [*[(0, 0)] * num_before, *spans, *[(len(text), len(text))] * num_after]


class VocabularyTokenizer(BaseTokenizer):
    """A tokenizer whose bundle numbers the pieces in a vocabulary, or in one for each side."""

    def __init__(self, config: BundleConfig, source: Vocabulary, target: Vocabulary) -> None:
        super().__init__(config)
        self._source_names, self._target_names = (
            {id_: piece for piece, id_ in vocabulary.items()} for vocabulary in (source, target)
        )

    def source_pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Return the vocabulary entry of each source token."""
        return [self._source_names.get(id_, "") for id_ in token_ids]

    def target_pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Return the vocabulary entry of each target token."""
        return [self._target_names.get(id_, "") for id_ in token_ids]


def read_vocabularies(bundle: Bundle) -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of source and target. Raises ValueError for files that do not fit the model."""
    shapes = bundle.config.shapes
    source = _read(bundle, VOCABULARY_FILE)
    has_two = bundle.file(TARGET_VOCABULARY_FILE).is_file()
    target = _read(bundle, TARGET_VOCABULARY_FILE) if has_two else source
    _check_ids(source, shapes.vocab_size, VOCABULARY_FILE)
    _check_ids(target, shapes.target_vocab_size, TARGET_VOCABULARY_FILE if has_two else VOCABULARY_FILE)
    return source, target


def _read(bundle: Bundle, file: str) -> Vocabulary:
    content = json.loads(bundle.file(file).read_text(encoding="utf-8"))
    if not isinstance(content, dict) or not content:
        raise ValueError(f"{file} must be a JSON object of pieces and their tokens")
    return {str(piece): int(id_) for piece, id_ in content.items()}


def _check_ids(vocabulary: Mapping[str, int], vocab_size: int, file: str) -> None:
    """Raise ValueError for tokens outside the model's vocabulary: an int8 graph would read a wrong row for them."""
    if wrong := [id_ for id_ in vocabulary.values() if not 0 <= id_ < vocab_size]:
        raise ValueError(f"tokens of {file} must be from 0 to {vocab_size - 1}. Given: {wrong[0]}")
