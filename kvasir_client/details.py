"""Details of translations: tokens of a sentence, and reports on how a translation came about."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenAlternative:
    """A token that the model considered in place of the one it chose, with its log-probability."""

    token: str
    score: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """Token details of one sentence. Details that the request did not ask for are None.

    `alignment` has an index into `source_tokens`, and `attention` a row of weights over them, for each target token but
    the end.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    token_scores: list[float | None] | None = None
    token_alternatives: list[list[TokenAlternative]] | None = None
    alignment: list[int] | None = None
    attention: list[list[float]] | None = None


@dataclass(frozen=True, slots=True)
class ProtectedSpan:
    """A span that had to survive the translation, such as an address, and the means that kept it."""

    text: str
    kind: str
    means: str


@dataclass(frozen=True, slots=True)
class KeptSentence:
    """A text, or a sentence of low quality, that was not translated, and the reason."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class RepairedSentence:
    """A source sentence that was decoded again, and what its first translation lacked."""

    text: str
    repair: str


@dataclass(frozen=True, slots=True)
class NumberDifferences:
    """Numbers of a text without a counterpart in its translation, and numbers that only the translation has."""

    missing: list[str] | None = None
    invented: list[str] | None = None


@dataclass(frozen=True, slots=True)
class SentenceQuality:
    """A translated sentence, and the probability that its translation is good."""

    text: str
    translation: str
    quality: float


@dataclass(frozen=True, slots=True)
class TranslationDetails:
    """Reports on how a translation came about; None where there is nothing to report.

    `formality_mismatches` and `incomplete` list source sentences: those with another form of address than the requested
    one, and those whose translation lacks something.
    """

    protected: list[ProtectedSpan] | None = None
    kept: list[KeptSentence] | None = None
    formality_mismatches: list[str] | None = None
    repaired: list[RepairedSentence] | None = None
    incomplete: list[str] | None = None
    numbers: NumberDifferences | None = None
    quality: list[SentenceQuality] | None = None
    low_quality: list[SentenceQuality] | None = None
