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
class ProtectedItem:
    """An item that had to survive the translation, such as a number, and the means that kept it."""

    text: str
    kind: str
    means: str


@dataclass(frozen=True, slots=True)
class KeptSentence:
    """A sentence that was not translated, and the reason."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class SentenceQuality:
    """A translated sentence, and the probability that its translation is good."""

    text: str
    translation: str
    quality: float


@dataclass(frozen=True, slots=True)
class TranslationDetails:
    """Reports on how a translation came about; None where there is nothing to report.

    `other_address`, `recovered` and `incomplete` list source sentences: those with another form of address than the
    requested one, those that were decoded again, and those whose translation lacks something.
    """

    protected: list[ProtectedItem] | None = None
    kept: list[KeptSentence] | None = None
    other_address: list[str] | None = None
    recovered: list[str] | None = None
    incomplete: list[str] | None = None
    quality: list[SentenceQuality] | None = None
    low_quality: list[SentenceQuality] | None = None
