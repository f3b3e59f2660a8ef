"""Tokens around the text of a source: control tokens, and tokens of languages."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bundle.manifest import BundleConfig


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
