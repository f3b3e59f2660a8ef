"""Detection of sentences that a model must not translate: their source is kept."""

import re
from collections.abc import Callable, Collection
from enum import StrEnum

from server.text.code_lines import KEYWORDS, is_code
from server.text.function_words import function_words
from server.text.language_evidence import LanguageEvidence
from server.text.language_tags import primary_language
from server.text.name_lists import NameLists

_WORD = re.compile(r"[^\W\d_]+")
# Nats for each letter. Of ordinary sentences 0.1 % cost more, of random letters 99 %.
_MAX_COST = 4.6
_MAX_COST_OF_WORD = 5.5  # names cost much
_MAX_SHORT_WORDS = 2
_MAX_SHORT_CHARACTERS = 100
_MIN_LETTERS = 3  # "OK" and "TV" cost much
# Words that a text may have if it consists of one, two or three different ones.
_MAX_REPETITIONS = {1: 5, 2: 20, 3: 20}
_MIN_PROSE = 2
_MAX_COSTED_WORDS = 12  # enough to recognise a sentence without words
# A limit for the cost of a letter of the source and of a token of the translation, in nats. It rejects 5 % of the
# translations of one or two words that have a chrF of 50 or more, and half of those below 20.
_WEIGHT = 3.0
_MAX_DOUBT = 7.0
_MOST_COST = 5.0  # that counts: short words such as Egg cost up to 7, and a model that is sure of them knows them
_PUNCTUATION = ".,;:!?…\"'“”„‚‘’«»()[]"


class KeepReason(StrEnum):
    """The reason why a source was kept."""

    NO_WORDS = "no_words"
    UNINTELLIGIBLE = "unintelligible"
    NOT_IN_SOURCE_LANGUAGE = "not_in_source_language"
    ALREADY_IN_TARGET_LANGUAGE = "already_in_target_language"
    LOW_QUALITY = "low_quality"


class SourceCheck:
    """Finds the reason to keep a sentence of one source language from a model, and from one target language.

    `cost` is how unlikely a word is for the vocabulary, in nats; it is 0 for all if the vocabulary has no words.
    Thread-safe. `keeps_target` and `keeps_others` choose between the reasons.
    """

    def __init__(self, cost: Callable[[str], float], source: str, target: str) -> None:
        self._cost = cost
        self._is_informed = cost("a") > 0
        self._evidence = LanguageEvidence(source, target)
        self._names = NameLists(cost)
        self._function_words = function_words(primary_language(source))
        self._prose = self._function_words - KEYWORDS

    def reason(self, text: str, code: str, *, keeps_target: bool, keeps_others: bool) -> KeepReason | None:
        """Return the reason to keep a sentence; None to translate it. `code` has what may be code in it."""
        words = text.lower().split()
        distinct = set(words)
        is_repeated = len(words) > _MAX_REPETITIONS.get(len(distinct), len(words))
        if not is_repeated and len(distinct & self._prose) >= _MIN_PROSE and self._evidence.is_surely_source(distinct):
            return None  # nearly all sentences, and no code has so many of these words
        distinct = {word.strip(_PUNCTUATION) for word in distinct}
        if keeps_others:
            if is_repeated:
                return KeepReason.UNINTELLIGIBLE
            if is_code(code, self._function_words):
                return KeepReason.NOT_IN_SOURCE_LANGUAGE
        if self._evidence.is_surely_source(distinct):
            return None
        if keeps_others and self._names.is_list(text):
            return KeepReason.NO_WORDS
        if keeps_target and self._evidence.is_target(text):
            return KeepReason.ALREADY_IN_TARGET_LANGUAGE
        return self._other_reason(text, distinct) if keeps_others else None

    def is_doubtful(self, text: str, log_probability: float) -> bool:
        """Return whether a short text is none that the model understands, by the mean `log_probability` of its tokens.

        Longer texts are sentences: their words decide.
        """
        if not self._is_informed or len(text) > _MAX_SHORT_CHARACTERS:
            return False
        words = _WORD.findall(text)
        if not words or len(words) > _MAX_SHORT_WORDS:
            return False
        if not self._function_words.isdisjoint(map(str.lower, words)):
            return False
        cost = min(self._cost_of(words), _MOST_COST)
        return not _is_label(words) and cost - _WEIGHT * log_probability > _MAX_DOUBT

    def _other_reason(self, text: str, words: Collection[str]) -> KeepReason | None:
        letters = _WORD.findall(text)
        if not letters:
            return KeepReason.NO_WORDS
        has_language = self._evidence.has_foreign_words(words) or self._evidence.is_in_other_script(text)
        if self._is_unintelligible(letters) and not has_language:
            return KeepReason.UNINTELLIGIBLE
        return KeepReason.NOT_IN_SOURCE_LANGUAGE if self._evidence.is_other(text) else None

    def _is_unintelligible(self, words: list[str]) -> bool:
        if not self._is_informed or _is_label(words):
            return False
        return self._cost_of(words) > (_MAX_COST if len(words) > 1 else _MAX_COST_OF_WORD)

    def _cost_of(self, words: list[str]) -> float:
        """Return the mean cost of a letter."""
        words = words[:_MAX_COSTED_WORDS]
        return sum(map(self._cost, words)) / sum(map(len, words))


def _is_label(words: list[str]) -> bool:
    """Return whether words are too short or too much like abbreviations to doubt them."""
    return all(len(word) < _MIN_LETTERS or word.isupper() for word in words)
