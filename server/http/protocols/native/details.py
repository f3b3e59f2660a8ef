"""Reports of the native protocol on how a translation came about."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from server.text.items.kinds import ItemKind
from server.text.protection.means import Means
from server.text.source_check import KeepReason
from server.translation.types import SentenceQuality, Translation


class ProtectedItem(BaseModel):
    """An item of a text that had to survive its translation."""

    text: str
    kind: ItemKind
    means: Means = Field(
        description="as_is: the model wrote it; hypothesis: in a hypothesis that was not its best; corrected: in place "
        "of another number; stand_in, name, required: it read another item or a name instead; placed: it was put "
        "beside its words; apart: the sentence was translated around it"
    )


class KeptSentenceAnswer(BaseModel):
    """A sentence that was not translated: the translation has its source."""

    text: str
    reason: KeepReason


class SentenceQualityAnswer(BaseModel):
    """A sentence, its translation, and the quality."""

    text: str
    translation: str
    quality: float = Field(ge=0, le=1)


class TranslationDetails(BaseModel):
    """How a translation came about."""

    protected: list[ProtectedItem] | None = Field(
        None, description="numbers, addresses, placeholders and signs, in their order"
    )
    kept: list[KeptSentenceAnswer] | None = Field(
        None,
        description="sentences that were not translated; `if_already_target` and `if_untranslatable` translate them",
    )
    other_address: list[str] | None = Field(
        None, description="translated sentences that do not have the form of address that `formal` asks for"
    )
    recovered: list[str] | None = Field(
        None, description="sentences whose first translation lacked something; they were decoded again"
    )
    incomplete: list[str] | None = Field(None, description="sentences whose translation lacks something")
    quality: list[SentenceQualityAnswer] | None = Field(
        None, description="sentences that were translated, if `return_quality` is set"
    )
    low_quality: list[SentenceQualityAnswer] | None = Field(
        None, description="sentences with a quality below `min_quality`"
    )


def translation_details(translation: Translation) -> TranslationDetails | None:
    """Return the details of a translation; None if there is nothing to report."""
    reported = (translation.protected, translation.kept, translation.recovered, translation.incomplete)
    qualities = (translation.sentence_quality, translation.low_quality)
    if not any((*reported, *qualities, translation.other_address)):
        return None
    items = [ProtectedItem(text=item.text, kind=item.kind, means=item.means) for item in translation.protected]
    kept = [KeptSentenceAnswer(text=each.text, reason=each.reason) for each in translation.kept]
    return TranslationDetails(
        protected=items or None,
        kept=kept or None,
        other_address=list(translation.other_address) or None,
        recovered=list(translation.recovered) or None,
        incomplete=list(translation.incomplete) or None,
        quality=_qualities(translation.sentence_quality),
        low_quality=_qualities(translation.low_quality),
    )


def _qualities(sentences: Sequence[SentenceQuality]) -> list[SentenceQualityAnswer] | None:
    return [
        SentenceQualityAnswer(text=each.text, translation=each.translation, quality=each.quality) for each in sentences
    ] or None
