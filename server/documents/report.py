"""Summary of a document's translation: its texts, sentences that need attention, and the mean quality."""

from collections import Counter
from dataclasses import dataclass, field

from server.documents.fragment import DocumentCounts
from server.translation.types import KeepReason, MemoryUse, TranslationResult


@dataclass(slots=True)
class DocumentReport:
    """Numbers of sentences of each kind in all blocks of a document that were translated so far.

    `counts` are those of its texts; None until the end.
    """

    counts: DocumentCounts | None = None
    kept: Counter[KeepReason] = field(default_factory=Counter)
    repaired: int = 0
    incomplete: int = 0
    numbers_differ: int = 0
    low_quality: int = 0
    memory: Counter[MemoryUse] = field(default_factory=Counter)
    _quality_sum: float = 0.0
    _num_tokens: int = 0  # of texts with a quality

    def add(self, result: TranslationResult) -> None:
        """Add the translations of a block."""
        self.kept.update([sentence.reason for sentence in result.kept_sentences])
        self.repaired += result.outcomes.get("repaired", 0)
        self.incomplete += result.outcomes.get("incomplete", 0)
        self.numbers_differ += result.outcomes.get("numbers_differ", 0)
        self.low_quality += result.num_low_quality
        for each in result.translations:
            self.memory.update([sentence.use for sentence in each.memory])
            if each.quality is not None:
                self._quality_sum += each.quality * each.source_tokens
                self._num_tokens += each.source_tokens

    @property
    def quality(self) -> float | None:
        """The mean quality of the texts, weighted by their source tokens; None if it was not estimated."""
        return round(self._quality_sum / self._num_tokens, 4) if self._num_tokens else None
