"""Members that the kinds of tokenizers share."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bundle.loading import Bundle
from bundle.manifest import TARGET_VOCABULARY_FILE, VOCABULARY_FILE, BundleConfig


class SourceTemplate:
    """Completes the tokens of a text to those of a source, as `bundle.json` describes them."""

    def __init__(self, config: BundleConfig) -> None:
        described = config.tokenizer
        end = config.special_tokens.end_of_sequence
        self._before = described.before
        self._after = (end,) if described.after is None else described.after
        self._languages = described.source_language_tokens
        self._language_last = described.source_language_last
        self._prompts = described.prompts
        self.num_before = len(self._before) + (bool(self._languages) and not self._language_last)
        self.num_added = len(self._before) + len(self._after) + bool(self._languages)

    @property
    def longest_prompt(self) -> str:
        """The longest of all prompts."""
        return max(self._prompts.values(), key=len, default="")

    def prompt(self, target: str | None) -> str:
        """Return the text before the text of a source in this target language."""
        return "" if target is None else self._prompts.get(target, "")

    def source(self, text_ids: Sequence[int], source: str | None) -> NDArray[np.int32]:
        """Return the tokens [source_len] of a source in this language."""
        language = None if source is None else self._languages.get(source)
        if language is None:
            ids = [*self._before, *text_ids, *self._after]
        elif self._language_last:
            ids = [*self._before, *text_ids, *self._after, language]
        else:
            ids = [language, *self._before, *text_ids, *self._after]
        return np.array(ids, dtype=np.int32)


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
        self._source_names = {id_: piece for piece, id_ in source.items()}
        is_shared = target is source
        self._target_names = self._source_names if is_shared else {id_: piece for piece, id_ in target.items()}

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


def spans_of_beginnings(
    token_ids: Sequence[int], text: str, beginning: Callable[[Sequence[int]], str]
) -> list[tuple[int, int]]:
    """Return the range of `text` that each token adds; `beginning` decodes the first tokens.

    A token that only begins a character has an empty range; the token that completes it has the character.
    """
    ends = [0]
    for num_tokens in range(1, len(token_ids) + 1):
        ends.append(min(max(len(beginning(token_ids[:num_tokens])), ends[-1]), len(text)))
    return list(pairwise(ends))
