"""Results of parts of a request, merged into one."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import reduce
from operator import add
from typing import TypeVar

from server.interface.request import FinishReason
from server.text.language_detection import Detection
from server.text.unicode_text import replace_lone_surrogates
from server.translation.token_counts import TokenCounts
from server.translation.types import KeepReason, KeptSentence, Phases, Translation, TranslationResult

_PHASE_NAMES = tuple(field.name for field in fields(Phases))
Key = TypeVar("Key")


def merge(
    texts: Sequence[str], indices: Sequence[Sequence[int]], results: Sequence[TranslationResult]
) -> TranslationResult:
    """Merge the results of parts in the order of the texts; a text in no part is its own translation."""
    translations = [Translation(replace_lone_surrogates(text), 0, 0, FinishReason.STOP, math.nan) for text in texts]
    for its_indices, result in zip(indices, results, strict=True):
        for index, translation in zip(its_indices, result.translations, strict=True):
            translations[index] = translation
    return TranslationResult(
        translations,
        _longest([result.phases for result in results]),
        reduce(add, [result.sentence_tokens for result in results], TokenCounts({}, {})),
        sum(result.num_splits for result in results),
        next((result.seed for result in results if result.seed is not None), None),
        _sum_counts([result.kept_spans for result in results]),
        _sum_counts([result.kept_sentences for result in results]),
        _sum_counts([result.outcomes for result in results]),
    )


def with_kept(
    result: TranslationResult, unchanged: Collection[int], detected: Sequence[Detection | None]
) -> TranslationResult:
    """Return the result with the reasons why texts were not translated."""
    translations = list(result.translations)
    counts = Counter(result.kept_sentences)
    for index in unchanged:
        reason = KeepReason.NO_WORDS if detected[index] is None else KeepReason.ALREADY_IN_TARGET_LANGUAGE
        if visible := translations[index].text.strip():
            translations[index] = replace(translations[index], kept=(KeptSentence(visible, reason),))
            counts[reason] += 1
    return replace(result, translations=translations, kept_sentences=counts)


def _sum_counts(counts: Iterable[Mapping[Key, int]]) -> Mapping[Key, int]:
    total = Counter[Key]()
    for each in counts:
        total.update(each)
    return total


def _longest(phases: Sequence[Phases]) -> Phases:
    """Return the phases of parts that ran at the same time."""
    return Phases(*(max((getattr(each, name) for each in phases), default=0.0) for name in _PHASE_NAMES))
