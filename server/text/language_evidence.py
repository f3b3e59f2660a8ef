"""Evidence that a sentence is in another language than the source language of its request."""

import math
import re
from collections.abc import Collection
from functools import lru_cache

from server.text.function_words import distinctive_words, function_words, words_of_others
from server.text.language_detection import label_of, readable
from server.text.language_identifier import load_identifier
from server.text.language_tags import primary_language
from server.text.scripts import main_script, scripts_of

# Differences of log-likelihoods, divided by the square root of the length in bytes, as benchmarks/quality/
# mixed_documents.py measures them. Other languages need more, because there are a hundred of them.
_MIN_FOR_TARGET = 2.0
_MIN_FOR_OTHERS = 3.0
_MIN_LETTERS = 8
_MIN_WORDS = 2
_FEW_WORDS = 4
_WORDS_PER_FUNCTION_WORD = 5  # in ordinary sentences, at most
_OWN_PER_FOREIGN = 3
_SMALLEST = 1e-30  # in place of a likelihood of 0

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


class LanguageEvidence:
    """Compares how likely a sentence is in its source language, in the target language and in all others. Thread-safe.

    Names and short labels are no evidence: words with capitals only, fewer than two words or eight letters. Only
    another script is evidence in any text.
    """

    def __init__(self, source: str, target: str) -> None:
        self._source, self._target = label_of(primary_language(source)), label_of(primary_language(target))
        self._scripts = scripts_of(self._source)
        self._target_scripts = scripts_of(self._target)
        self._own_words = function_words(self._source)
        self._distinctive_words = distinctive_words(self._source)
        self._foreign_words = words_of_others(self._source)

    def is_surely_source(self, words: set[str]) -> bool:
        """Return whether function words of the source language are among these words, and hardly one of another.

        `words` are in lower case. It takes a microsecond, and recognises nearly all ordinary sentences.
        """
        if words.isdisjoint(self._distinctive_words):
            return False
        num_foreign = len(words & self._foreign_words)
        if num_foreign == 0:
            return True
        num_own = len(words & self._own_words)
        return _WORDS_PER_FUNCTION_WORD * num_own >= len(words) and num_own >= _OWN_PER_FOREIGN * num_foreign

    def has_foreign_words(self, words: Collection[str]) -> bool:
        """Return whether one of these words, in lower case, is a function word of another language."""
        return not self._foreign_words.isdisjoint(words)

    def is_in_other_script(self, text: str) -> bool:
        """Return whether at least half of the letters are of no script of the source language."""
        return (script := main_script(text)) is not None and script not in self._scripts

    def is_target(self, text: str) -> bool:
        """Return whether a sentence is in the target language."""
        if self._source == self._target:
            return False
        if (script := main_script(text)) is not None and script not in self._scripts:
            return script in self._target_scripts
        return self._is_in(text, is_target=True)

    def is_other(self, text: str) -> bool:
        """Return whether a sentence is in neither the source nor the target language."""
        if (script := main_script(text)) is not None and script not in self._scripts:
            return script not in self._target_scripts
        return self._is_in(text, is_target=False)

    def _is_in(self, text: str, *, is_target: bool) -> bool:
        words = _WORD.findall(text)
        without_names = words if text.isupper() else [word for word in words if not word[0].isupper()]
        if len(set(words)) < _MIN_WORDS or sum(map(len, words)) < _MIN_LETTERS or not without_names:
            return False
        # The detector takes longer than all other checks, and short sentences seldom convince it.
        if len(words) < _FEW_WORDS and text.isascii() and self._foreign_words.isdisjoint(map(str.lower, words)):
            return False
        if not _knows(self._source) or (is_target and not _knows(self._target)):
            return False
        margin, of_target = _margins(text, self._source, self._target)
        if is_target:
            if of_target < max(_MIN_FOR_TARGET, margin):
                return False
        elif margin < max(_MIN_FOR_OTHERS, of_target):
            return False
        # The names of a language are in sentences of all others.
        rest = " ".join(without_names)
        return (
            len(without_names) < _MIN_WORDS
            or len(rest) < _MIN_LETTERS
            or _margins(rest, self._source, self._target)[is_target] > 0
        )


@lru_cache(maxsize=64)  # a sentence is compared with the target first, and then with all others
def _margins(text: str, source: str, target: str) -> tuple[float, float]:
    """Return by how much the most likely other language, and the target, are more likely than the source."""
    ranked = load_identifier().rank(readable(text))
    likelihoods = dict(ranked)
    own = max(likelihoods[source], _SMALLEST)
    other = next(likelihood for label, likelihood in ranked if label not in (source, target))
    return math.log(max(other, _SMALLEST) / own), math.log(max(likelihoods.get(target, 0.0), _SMALLEST) / own)


@lru_cache(maxsize=1)
def _labels() -> frozenset[str]:
    return frozenset(load_identifier().labels)


def _knows(language: str) -> bool:
    return language in _labels()
