"""Reports of the native protocol on how a translation came about."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from bundle.manifest import Repair
from server.text.protection.masked_sentence import Means
from server.text.spans import SpanKind
from server.translation.types import KeepReason, MemoryUse, SentenceMemory, SentenceQuality, Translation


class ProtectedSpanAnswer(BaseModel):
    """A span of a text that had to survive its translation."""

    text: str
    kind: SpanKind
    means: Means = Field(
        description="as_is: the model read it and wrote it; mask: the model read a mask; placed: it was put next to "
        "its words; apart: the sentence was translated around it"
    )


class KeptSentenceAnswer(BaseModel):
    """A text, or a sentence of low quality, that was not translated: the translation has its source."""

    text: str
    reason: KeepReason


class RepairedSentenceAnswer(BaseModel):
    """A sentence that was decoded again, and what its first translation lacked."""

    text: str
    repair: Repair


class NumbersAnswer(BaseModel):
    """Numbers that differ between a text and its translation, as each writes them."""

    missing: list[str] | None = Field(None, description="numbers of the source without a counterpart")
    invented: list[str] | None = Field(None, description="numbers of the translation that the source does not have")


class SentenceQualityAnswer(BaseModel):
    """A sentence, its translation, and the quality."""

    text: str
    translation: str
    quality: float = Field(ge=0, le=1)


class SentenceMemoryAnswer(BaseModel):
    """What the translation memory had for a sentence."""

    text: str
    memory: MemoryUse = Field(
        description="exact: its translation, which is the answer; fuzzy: one of a similar sentence"
    )
    score: int | None = Field(
        default=None, description="100 for exact; else 100 minus the edit distance in percent of the words"
    )
    segment_id: str | None = None
    source_text: str | None = Field(default=None, description="of the similar sentence")
    target_text: str | None = Field(default=None, description="of the similar sentence")


class TranslationDetails(BaseModel):
    """How a translation came about."""

    protected: list[ProtectedSpanAnswer] | None = Field(
        None, description="addresses, placeholders, identifiers and symbols, in their order"
    )
    kept: list[KeptSentenceAnswer] | None = Field(
        None, description="what was not translated; `if_already_target` and `on_low_quality` translate it"
    )
    formality_mismatches: list[str] | None = Field(
        None, description="translated sentences that do not have the form of address that `formal` asks for"
    )
    repaired: list[RepairedSentenceAnswer] | None = Field(
        None, description="sentences whose first translation lacked something; they were decoded again"
    )
    incomplete: list[str] | None = Field(None, description="sentences whose translation lacks something")
    numbers: NumbersAnswer | None = Field(None, description="numbers that were lost or invented; none is corrected")
    quality: list[SentenceQualityAnswer] | None = Field(
        None, description="sentences that were translated, if `return_quality` is set"
    )
    low_quality: list[SentenceQualityAnswer] | None = Field(
        None, description="sentences with a quality below `min_quality`"
    )
    memory: list[SentenceMemoryAnswer] | None = Field(None, description="all sentences, if a memory was used")


def translation_details(translation: Translation) -> TranslationDetails | None:
    """Return the details of a translation; None if there is nothing to report."""
    missing, invented = list(translation.missing_numbers), list(translation.invented_numbers)
    numbers = NumbersAnswer(missing=missing or None, invented=invented or None) if missing or invented else None
    spans = [ProtectedSpanAnswer(text=each.text, kind=each.kind, means=each.means) for each in translation.protected]
    kept = [KeptSentenceAnswer(text=each.text, reason=each.reason) for each in translation.kept]
    repaired = [RepairedSentenceAnswer(text=each.text, repair=each.repair) for each in translation.repaired]
    details = TranslationDetails(
        protected=spans or None,
        kept=kept or None,
        formality_mismatches=list(translation.formality_mismatches) or None,
        repaired=repaired or None,
        incomplete=list(translation.incomplete) or None,
        numbers=numbers,
        quality=_qualities(translation.sentence_quality),
        low_quality=_qualities(translation.low_quality),
        memory=list(map(_memory, translation.memory)) or None,
    )
    return details if any(value is not None for _, value in details) else None


def _memory(sentence: SentenceMemory) -> SentenceMemoryAnswer:
    match = sentence.match
    if match is None:
        return SentenceMemoryAnswer(text=sentence.text, memory=sentence.use)
    return SentenceMemoryAnswer(
        text=sentence.text,
        memory=sentence.use,
        score=match.score,
        segment_id=match.segment,
        source_text=None if match.is_exact else match.source,
        target_text=None if match.is_exact else match.target,
    )


def _qualities(sentences: Sequence[SentenceQuality]) -> list[SentenceQualityAnswer] | None:
    return [
        SentenceQualityAnswer(text=each.text, translation=each.translation, quality=each.quality) for each in sentences
    ] or None
