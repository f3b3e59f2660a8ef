"""Repairs that a bundle needs: which of them a request has, and signs that a translation lacks a part of its source.

docs/quality.md has the rates at which omissions are noticed, and the false alarms.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bundle.manifest import BundleConfig, Repair
from server.interface.request import FinishReason, Hypothesis
from server.text.protection.masked_sentence import is_shouted
from server.text.segmentation.sentences import sentences
from server.translation.limits import TranslationLimits
from server.translation.submission import num_tokens
from server.translation.types import TranslationRequest

# docs/quality.md has the rates at which these limits detect omissions, and their false alarms.
_MIN_RATIO = 0.6  # characters of a translation to those of a source with several parts
_MIN_RATIO_OF_ONE = 0.3  # of any other source
_MIN_CHARACTERS = 40  # of a source whose length is compared
_MIN_RATIO_OF_PART = 0.6  # of a part, to that of the whole
_MIN_LOG_PROBABILITY = -1.2  # mean of the tokens of the translation of several parts
# Of many parts, or of short ones: those are dropped more often, and models are sure of short sentences.
_MIN_LOG_PROBABILITY_OF_MANY = -0.3
_MANY_PARTS = 4
_SHORT_PART = 50  # characters, on average
_WIDE_LETTERS = 1.5  # what a Chinese, Japanese or Korean character counts more than a letter
_MIN_SHARED = 0.2  # trigrams of letters
_MIN_WORDS = 2  # in brackets or quotation marks, for a part of its own

_INNER_MARK = re.compile(r"[.!?…;。！？；\n\r()\[\]\"“”„«»](?=[\s\S]*\w)")
_GROUP = re.compile(r"\(([^()]+)\)|\[([^\[\]]+)\]|[\"“„«»]([^\"“”„«»]+)[\"”“«»]")
_WIDE = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SEMICOLON = re.compile(r"[;；]")
_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W\d_]")
_TRAILING = re.compile(r"[^\w.!?…。！？%°]+$")

Span = tuple[int, int]


def may_have_parts(text: str) -> bool:
    """Return whether a text has a mark between parts. It is fast, and True for some texts with one part."""
    return _INNER_MARK.search(text) is not None


def parts(text: str, language: str) -> list[Span]:
    """Return the parts of a text that say something of their own, in their order.

    They are sentences, what stands between semicolons, and what is in brackets or quotation marks.
    """
    found: list[Span] = []
    for start, end in _regions(text):
        position = start
        for mark in (*_SEMICOLON.finditer(text, start, end), None):
            stop = end if mark is None else mark.start()
            found += _sentences(text, position, stop, language)
            position = end if mark is None else mark.end()
    return found


def doubt(source: str, translation: str, languages: tuple[str, str], log_probability: float) -> float:
    """Return how much speaks for a translation that lacks something of its source.

    From 1 on, it should be compared with another attempt. `languages` are those of both; `log_probability` is the mean
    of the tokens, NaN if it is unknown.
    """
    if lacks_parts(source, translation, languages):
        return math.inf
    spans = parts(source, languages[0]) if may_have_parts(source) else []
    if len(spans) < 2:
        return 0.0
    has_many = len(spans) >= _MANY_PARTS or len(source) < _SHORT_PART * len(spans)
    limit = _MIN_LOG_PROBABILITY_OF_MANY if has_many else _MIN_LOG_PROBABILITY
    # The comparison with NaN is false, so the first one counts then.
    return max(shortness(source, translation, languages), log_probability / limit)


def shortness(source: str, translation: str, languages: tuple[str, str]) -> float:
    """Return how short a translation of several parts is, or its shortest part; from 1 on, too short.

    Parts are compared if there are as many as in the source.
    """
    ratio = _length(translation) / max(_length(source), 1)
    whole = _MIN_RATIO / max(ratio, 0.01)
    spans, translated = parts(source, languages[0]), parts(translation, languages[1])
    if len(spans) != len(translated):
        return whole
    usual = _MIN_RATIO_OF_PART * len(translation) / max(len(source), 1)
    compared = zip(spans, translated, strict=True)
    return max([whole, *(usual * (stop - begin) / (end - start) for (begin, stop), (start, end) in compared)])


def lacks_any(translation: str, translated_parts: Iterable[str]) -> bool:
    """Return whether a translation has hardly anything of the translation of one of its parts by itself."""
    there = _trigrams(translation)
    return any(len(own & there) < _MIN_SHARED * len(own) for own in map(_trigrams, translated_parts))


def _trigrams(text: str) -> set[str]:
    letters = "".join(_LETTER.findall(text.lower()))
    return {letters[start : start + 3] for start in range(len(letters) - 2)}


def lacks_parts(source: str, translation: str, languages: tuple[str, str]) -> bool:
    """Return whether a translation has fewer parts than its source, or is far too short."""
    length = _length(source)
    if length >= _MIN_CHARACTERS and _length(translation) < _MIN_RATIO_OF_ONE * length:
        return True
    return may_have_parts(source) and len(parts(translation, languages[1])) < len(parts(source, languages[0]))


def _length(text: str) -> float:
    """Return the characters of a text, as many as an alphabet would need."""
    return len(text) if text.isascii() else len(text) + _WIDE_LETTERS * len(_WIDE.findall(text))


def _regions(text: str) -> Iterator[Span]:
    """Yield the spans between and in brackets and quotation marks with several words."""
    position = 0
    for match in _GROUP.finditer(text):
        inner = match.span(match.lastindex or 0)
        if len(_WORD.findall(text, *inner)) < _MIN_WORDS:
            continue
        yield position, match.start()
        yield inner
        position = match.end()
    yield position, len(text)


def _sentences(text: str, start: int, end: int, language: str) -> Iterator[Span]:
    """Yield the sentences of a span that have letters, without the marks around them but the end of the sentence."""
    position = start
    for segment in sentences(text[start:end], language):
        first = position + len(segment.before)
        last = first + len(segment.text)
        position = last + len(segment.after)
        if _LETTER.search(text, first, last) is None:
            continue
        word = _WORD.search(text, first, last)
        assert word is not None, "a letter is part of a word"
        trailing = _TRAILING.search(text[word.start() : last])
        yield word.start(), last if trailing is None else word.start() + trailing.start()


_LONG = 40  # characters
_CHARACTERS_PER_TOKEN = 8  # of a translation that is far too short


@dataclass(frozen=True, slots=True)
class Repairs:
    """The repairs of one request. Without any, an answer of the model is final."""

    enabled: Collection[Repair]
    languages: tuple[str, str]

    @classmethod
    def of(cls, request: TranslationRequest, limits: TranslationLimits, config: BundleConfig) -> "Repairs":
        """Return the repairs of the bundle, unless an option is about the translation itself."""
        languages = (request.source, request.target)
        if not (of_bundle := config.repairs.get("-".join(languages), ())):
            return cls((), languages)
        options = request.options
        has_own_terms = bool(options.target_prefix or options.required_phrases or options.decodes_independently)
        has_own_length = bool(options.max_new_tokens or options.max_length_ratio or not options.split)
        may_repair = limits.repairs(options) and not (
            has_own_terms
            or has_own_length
            or options.num_hypotheses > 1
            or options.num_beam_groups > 1
            or options.wants_details
            or options.suppress_phrases
            or options.suppress_tokens
            or request.glossary is not None
            or request.formality is not None
        )
        return cls(of_bundle if may_repair else (), languages)

    def is_shouted(self, text: str) -> bool:
        """Return whether a sentence is read in small letters."""
        return "capitals" in self.enabled and is_shouted(text)

    def may_be_incomplete(self, source: str, best: Hypothesis) -> bool:
        """Return whether a translation is worth a look for a missing part, without its text."""
        if best.finish_reason is not FinishReason.STOP:
            return True
        return "parts" in self.enabled and (
            may_have_parts(source)
            or (len(source) >= _LONG and _CHARACTERS_PER_TOKEN * len(best.token_ids) < len(source))
        )

    def lacks_part(self, source: str, translation: str, hypotheses: Sequence[Hypothesis]) -> bool:
        """Return whether a translation may lack a part of its source."""
        if any(each.finish_reason is not FinishReason.STOP for each in hypotheses):
            return True
        return "parts" in self.enabled and doubt(source, translation, self.languages, _mean(hypotheses)) >= 1

    def is_incomplete(self, source: str, translation: str, hypotheses: Sequence[Hypothesis]) -> bool:
        """Return whether a translation lacks something for certain: a limit ended it, or it has fewer parts."""
        if any(each.finish_reason is not FinishReason.STOP for each in hypotheses):
            return True
        return "parts" in self.enabled and lacks_parts(source, translation, self.languages)

    def is_better(
        self, source: str, first: tuple[str, Sequence[Hypothesis]], second: tuple[str, Sequence[Hypothesis], list[str]]
    ) -> bool:
        """Return whether a second translation, of each part by itself, has more of the source than the first."""
        (translation, hypotheses), (other, others, parts) = first, second
        if lacks_parts(source, other, self.languages):
            return False
        if self.is_incomplete(source, translation, hypotheses):
            return True
        # A part that ended in a loop does not show what is missing.
        have_ended = all(each.finish_reason is FinishReason.STOP for each in others)
        if have_ended and lacks_any(translation, parts):
            return True
        was_short = shortness(source, translation, self.languages) >= 1
        if was_short != (shortness(source, other, self.languages) >= 1):
            return was_short
        return _mean(others) > _mean(hypotheses)


def _mean(hypotheses: Sequence[Hypothesis]) -> float:
    """Return the mean log-probability of the tokens; NaN for a greedy search without scores."""
    total = math.fsum([each.log_probability for each in hypotheses])
    return total / max(sum(map(num_tokens, hypotheses)), 1)
