"""Language detection among candidates, with a confidence that is low for short or ambiguous texts."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from server.interface.interruption import checkpoint
from server.text.language_identifier import load_identifier
from server.text.spans import UNSPACED

# Characters of a text that are read: more do not change the result, and take time on the event loop.
_MAX_CHARACTERS = 2000

# The prior probability that a text is in one of the candidates, and not in any other language of the model.
_PRIOR_OF_CANDIDATES = 0.9

_CERTAIN = 0.9  # the confidence of a language that is certain, of a text with enough words

# A text is in the target language for certain: the probability among the two languages of a pair, and among all
# languages, and the words that it must have. docs/decisions/text.md has the rates at which they err.
_CERTAIN_OF_TWO = 0.97
_CERTAIN_OF_ALL = 0.9
_MIN_WORDS = 3
_MIN_HALVES = 60  # characters of a text whose second half is looked at by itself
_FIRST_LOOK = 50  # characters; a text that does not begin in the target language is not in it
_TEXTS_AT_ONCE = 512  # some milliseconds

# Languages whose label in the model differs from their tag.
_LABELS: Mapping[str, str] = {"cmn": "zh", "fil": "tl", "in": "id", "iw": "he", "nb": "no", "ji": "yi"}


@dataclass(frozen=True, slots=True)
class Detection:
    """A language, by its tag among the candidates, and the probability that a text is in it."""

    language: str
    confidence: float


class Detector:
    """Ranks candidate languages of texts. Those that the model does not support are in `unknown`. Thread-safe."""

    def __init__(self, candidates: Sequence[str]) -> None:
        known = _known_labels() if candidates else frozenset[str]()
        self._candidates: dict[str, str] = {}  # label to tag, the first of two with the same label
        self.unknown: list[str] = []
        for tag in candidates:
            if (label := label_of(tag)) in known:
                self._candidates.setdefault(label, tag)
            else:
                self.unknown.append(tag)

    @property
    def languages(self) -> list[str]:
        """The languages that can be detected."""
        return list(self._candidates.values())

    def rank(self, text: str) -> list[Detection]:
        """Return all candidates, the most likely first; none for a text without letters.

        The confidences are posterior probabilities: they sum to less than 1 by the probability of all other languages.
        """
        return self._rank(text, self._candidates)

    def _rank(self, text: str, candidates: Mapping[str, str]) -> list[Detection]:
        if not candidates or not has_letters(text):
            return []
        # Between blanks, as in a text: how a word begins and ends tells most about it.
        likelihoods = load_identifier().likelihoods(f" {readable(text)} ")
        in_candidates = sum(likelihoods[label] for label in candidates)
        others = max(1.0 - in_candidates, 0.0)
        num_candidates, num_others = len(candidates), len(likelihoods) - len(candidates)
        prior = _PRIOR_OF_CANDIDATES / num_candidates
        prior_of_other = (1.0 - _PRIOR_OF_CANDIDATES) / max(num_others, 1)
        total = in_candidates * prior + others * prior_of_other
        ranked = [
            Detection(tag, float(likelihoods[label] * prior / total) if total else 0.0)
            for label, tag in candidates.items()
        ]
        return sorted(ranked, key=lambda detection: -detection.confidence)

    def detect(self, text: str, target: str | None = None) -> Detection | None:
        """Return the most likely candidate; None for a text without letters.

        A text is in the language of the `target`, which need not be a candidate, for certain or not at all: it would
        not be translated.
        """
        candidates = self._candidates
        if target is None:
            return next(iter(self._rank(text, candidates)), None)
        label = label_of(target)
        if label not in candidates and label in _known_labels():
            candidates = {**candidates, label: target}
        ranked = self._rank(text, candidates)
        if ranked and label_of(ranked[0].language) == label and not _is_certain(text, ranked[0]):
            others = [each for each in ranked if label_of(each.language) != label]
            return others[0] if others else ranked[0] if label in self._candidates else None
        return ranked[0] if ranked else None

    def detect_all(self, texts: Iterable[str], target: str | None = None) -> list[Detection | None]:
        """Return what `detect` returns of the texts of one call; short ones are in the language of the long ones."""
        listed = list(texts)
        found = [self.detect(text, target) for text in listed]
        certain = Counter(
            each.language for text, each in zip(listed, found, strict=True) if each and _is_certain(text, each)
        )
        if target is not None:
            certain = Counter({tag: count for tag, count in certain.items() if label_of(tag) != label_of(target)})
        if not certain:
            return found
        [(language, _)] = certain.most_common(1)
        return [
            self._of(language, text) if each is not None and not _is_certain(text, each) else each
            for text, each in zip(listed, found, strict=True)
        ]

    def _of(self, language: str, text: str) -> Detection:
        """Return this language with the probability that a text is in it."""
        return next(each for each in self._rank(text, self._candidates) if each.language == language)


def _is_certain(text: str, detection: Detection) -> bool:
    return detection.confidence >= _CERTAIN and _has_words(text)


class TargetDetector:
    """Tells texts of a pair of languages that are in its target language already. Thread-safe."""

    def __init__(self, source: str, target: str) -> None:
        self._pair = (label_of(target), label_of(source))
        self._knows_both = len(set(self._pair)) == 2 and _known_labels().issuperset(self._pair)

    def are_certain(self, texts: Sequence[str]) -> list[bool]:
        """Return which whole texts of at least three words are in the target language for certain."""
        if not self._knows_both:
            return [False] * len(texts)
        may_be: list[bool] = []
        for begin in range(0, len(texts), _TEXTS_AT_ONCE):
            checkpoint()
            beginnings = [readable(text[:_FIRST_LOOK]) for text in texts[begin : begin + _TEXTS_AT_ONCE]]
            may_be += load_identifier().may_be(beginnings, *self._pair)
        return [maybe and self._is_certain(text) for maybe, text in zip(may_be, texts, strict=True)]

    def _is_certain(self, text: str) -> bool:
        checkpoint()
        if not _has_words(text):
            return False
        words, target = readable(text), self._pair[0]
        if self._of_pair(words) < _CERTAIN_OF_TWO:
            return False
        # A second half in the source language is outweighed by a longer first one.
        if len(words) > _MIN_HALVES and self._of_pair(words[len(words) // 2 :]) < 0.5:
            return False
        return load_identifier().likelihoods(words)[target] >= _CERTAIN_OF_ALL

    def _of_pair(self, words: str) -> float:
        """Return the probability that words are in the target language rather than in the source language."""
        return load_identifier().likelihoods(words, self._pair)[self._pair[0]]


def _has_words(text: str) -> bool:
    """Return whether a text has enough words; a word of a script without blanks is a letter here."""
    if text.count(" ") >= _MIN_WORDS - 1:
        return len([word for word in text.split() if any(map(str.isalpha, word))]) >= _MIN_WORDS
    return len(UNSPACED.findall(text)) >= _MIN_WORDS


def label_of(tag: str) -> str:
    """Return the model's label for the language of a tag, which need not be one of its languages."""
    primary = tag.strip().replace("_", "-").partition("-")[0].casefold()
    return _LABELS.get(primary, primary)


def has_letters(text: str) -> bool:
    """Return whether there is a letter."""
    return any(map(str.isalpha, text))


@cache
def _known_labels() -> frozenset[str]:
    return frozenset(load_identifier().labels)


def readable(text: str) -> str:
    """Return the beginning of a text without digits, symbols and control characters."""
    text = text[:_MAX_CHARACTERS]
    if text.isascii():
        return " ".join(text.translate(_UNREADABLE_ASCII).split())
    return " ".join("".join([character if _is_readable(character) else " " for character in text]).split())


def _is_readable(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMPZ"


# A string: `translate` takes an eighth of the time that it takes with a dictionary.
_UNREADABLE_ASCII = "".join(each if _is_readable(each) else " " for each in map(chr, range(128)))
