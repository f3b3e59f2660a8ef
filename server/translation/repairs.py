"""Repairs that a bundle needs: which of them a request has, and whether a translation may lack a part of its source.

docs/quality.md has the rates at which omissions are noticed, and the false alarms.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bundle.manifest import BundleConfig, Repair
from server.interface.request import FinishReason, Hypothesis
from server.text.casing import is_shouted
from server.text.completeness import doubt, lacks_any, lacks_parts, may_have_parts, shortness
from server.translation.limits import TranslationLimits
from server.translation.submission import num_tokens
from server.translation.types import TranslationRequest

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
        languages = (request.source, request.target)
        return cls(config.repairs.get("-".join(languages), ()) if may_repair else (), languages)

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
