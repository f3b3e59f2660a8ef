"""Splitting of texts into the sentences that Kvasir would translate, and joining of their translations."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sentencex

from server.text.segmentation.boundaries import rules_of


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence, or the text between two; a sentence has no white space at its ends."""

    text: str
    is_sentence: bool


def split(text: str, language: str, fits: Callable[[str], bool]) -> list[Part]:
    """Return parts whose concatenation is `text`. Kvasir's rules, or `sentencex`, and line breaks end sentences.

    A sentence that does not fit is halved at a space until it does. Text without letters and digits is no sentence.
    """
    parts: list[Part] = []
    rules = rules_of(language)
    for line in text.splitlines(keepends=True):
        for sentence in sentencex.segment(language, line) if rules is None else rules.sentences(line):
            words = sentence.strip()
            start = sentence.find(words)
            parts.append(Part(sentence[:start], is_sentence=False))
            parts.extend(_pieces(words, fits))
            parts.append(Part(sentence[start + len(words) :], is_sentence=False))
    return [part for part in parts if part.text]


def join(parts: Sequence[Part], translations: Sequence[str]) -> str:
    """Return the text with its sentences replaced by `translations`, which must have the same number."""
    remaining = iter(translations)
    joined = "".join(next(remaining) if part.is_sentence else part.text for part in parts)
    assert next(remaining, None) is None, "more translations than sentences"
    return joined


def _pieces(sentence: str, fits: Callable[[str], bool]) -> Iterator[Part]:
    if not any(map(str.isalnum, sentence)):
        yield Part(sentence, is_sentence=False)
        return
    space = _middle_space(sentence)
    if space is None or fits(sentence):
        yield Part(sentence, is_sentence=True)
        return
    yield from _pieces(sentence[:space].rstrip(), fits)
    yield Part(" ", is_sentence=False)
    yield from _pieces(sentence[space:].lstrip(), fits)


def _middle_space(sentence: str) -> int | None:
    """Return the index of the space nearest to the middle, if any."""
    spaces = (index for index, character in enumerate(sentence) if character == " ")
    return min(spaces, key=lambda index: abs(2 * index - len(sentence)), default=None)
