"""Texts that are lines of one text, such as captions: a sentence that runs over them is translated as one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from server.interface.request import FinishReason
from server.text.captions import Caption, ReadingLimits, divided, is_end, joined_captions, with_dividers
from server.text.readers.units import DIVIDER
from server.translation.types import Translation, TranslationRequest

if TYPE_CHECKING:
    from server.translation.service import TranslationOutcome

_LIMITS = ReadingLimits()
_NOTHING = Translation("", 0, 0, FinishReason.STOP, math.nan)


@dataclass(frozen=True, slots=True)
class JoinedLines:
    """The texts of a request with `words` in one line each, and the ranges of those that are translated together.

    A text in whose lines a sentence ends has no words: it stays as it is, alone.
    """

    texts: Sequence[str]
    words: Sequence[str]
    groups: Sequence[range]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "JoinedLines":
        """Join texts where a sentence goes on in the next one."""
        words = [_in_one_line(text) for text in texts]
        return cls(texts, words, joined_captions(words, [bool(text and other) for text, other in pairwise(words)]))

    def request(self, request: TranslationRequest) -> TranslationRequest:
        """Return the request with one text for each range."""
        texts = [
            with_dividers(self.words[group.start : group.stop]) if self._is_divided(group) else self.texts[group.start]
            for group in self.groups
        ]
        return replace(request, texts=tuple(texts), joins_lines=False, size_is_checked=True)

    def divided(self, outcome: "TranslationOutcome", language: str) -> "TranslationOutcome":
        """Return the outcome with a translation for each text: the first of a range has the counts of all."""
        translations: list[Translation] = []
        for group, translation in zip(self.groups, outcome.result.translations, strict=True):
            written = self._written(group, translation.text, language)
            others = [self._written(group, each.text, language) for each in translation.alternatives]
            for index, text in enumerate(written):
                alternatives = tuple(
                    replace(other, text=texts[index])
                    for other, texts in zip(translation.alternatives, others, strict=True)
                )
                translations.append(
                    replace(
                        translation if index == 0 else _NOTHING,
                        text=text,
                        alternatives=alternatives,
                        score=translation.score,
                        log_probability=translation.log_probability,
                        quality=translation.quality,
                    )
                )
        return replace(
            outcome,
            result=replace(outcome.result, translations=translations),
            detected=tuple(
                each for group, each in zip(self.groups, outcome.detected, strict=bool(outcome.detected)) for _ in group
            ),
            unchanged=frozenset(index for each in outcome.unchanged for index in self.groups[each]),
        )

    def _is_divided(self, group: range) -> bool:
        return len(group) > 1 or (bool(self.words[group.start]) and "\n" in self.texts[group.start])

    def _written(self, group: range, translation: str, language: str) -> list[str]:
        """Return the translations of the texts of a range, with as many lines as these."""
        if not self._is_divided(group):
            return [translation]
        sources = [self.texts[index] for index in group]
        if translation == with_dividers(self.words[group.start : group.stop]):
            return sources
        captions = divided(translation, [Caption(len(self.words[index])) for index in group], language, _LIMITS)
        return [_in_lines(source, text, language) for source, text in zip(sources, captions, strict=True)]


def _in_one_line(text: str) -> str:
    """Return the words of a text; nothing if a sentence ends in one of its lines but the last."""
    lines = text.split("\n")
    are_one = DIVIDER not in text and not any(is_end(line.strip(), other.strip()) for line, other in pairwise(lines))
    return " ".join(text.split()) if are_one else ""


def _in_lines(source: str, text: str, language: str) -> str:
    """Return a translation with as many lines as its source, and the same white space around it."""
    words = source.strip()
    lines = [Caption(len(line)) for line in words.split("\n")]
    if len(lines) > 1:
        text = "\n".join(dict.fromkeys(divided(text, lines, language, _LIMITS)))
    return source.replace(words, text, 1)
