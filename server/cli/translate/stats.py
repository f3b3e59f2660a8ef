"""Statistics of an offline translation."""

import threading
from dataclasses import dataclass, fields

from server.interface.engine_client import SentenceOutcome
from server.translation.types import TranslationResult


@dataclass(slots=True)
class OfflineStats:
    """Statistics of a run. Tokens include the end of every sentence; `seconds` exclude the loading of the model.

    `sentences` is the sum of `decoded`, `cached` (decoded earlier) and `coalesced` (joined an identical one in flight).
    """

    lines: int = 0
    texts: int = 0  # of a document
    translated_texts: int = 0  # those that differ from their source
    captions_joined: int = 0  # of a document: translated together with others
    caption_cuts: int = 0
    captions_too_fast: int = 0
    sentences: int = 0
    decoded: int = 0
    cached: int = 0
    coalesced: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    steps: int = 0
    rows: int = 0  # of all steps
    low_quality: int = 0  # sentences below the minimum quality
    quality_sum: float = 0.0  # of texts, each with its source tokens as weight
    quality_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Target tokens per second."""
        return self.target_tokens / self.seconds if self.seconds else 0.0

    @property
    def rows_per_step(self) -> float:
        """Mean number of rows in a decoder step, over all engines."""
        return self.rows / self.steps if self.steps else 0.0

    @property
    def quality(self) -> float | None:
        """The mean quality of texts, weighted by their source tokens; None if it was not estimated."""
        return self.quality_sum / self.quality_tokens if self.quality_tokens else None

    def count(self, result: TranslationResult) -> None:
        """Add the sentences, tokens and qualities of translated texts."""
        tokens = result.sentence_tokens
        self.sentences += tokens.num_sentences
        self.source_tokens += tokens.num_source_tokens
        self.target_tokens += tokens.num_target_tokens
        self.low_quality += result.num_low_quality
        for each in result.translations:
            if each.quality is not None:
                self.quality_sum += each.quality * each.source_tokens
                self.quality_tokens += each.source_tokens

    def add(self, other: "OfflineStats") -> None:
        """Add the counts of a part of the run."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_COUNTS = tuple(each.name for each in fields(OfflineStats) if each.name != "seconds")


class StatsRecorder:
    """Counts of decoded, cached and coalesced sentences, and of steps and their rows. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stats = OfflineStats()

    def sentences(self, outcome: SentenceOutcome, count: int) -> None:
        """Count sentences with this outcome."""
        setattr(self._stats, outcome, getattr(self._stats, outcome) + count)

    def cache_grew(self, _num_sentences: int, _num_bytes: int) -> None:
        """Do nothing; the cache ends with the run."""

    def step(self, rows: int, _seconds: float) -> None:
        """Count a decoder step."""
        with self._lock:
            self._stats.steps += 1
            self._stats.rows += rows

    def take(self) -> OfflineStats:
        """Return the counts since the last call."""
        with self._lock:
            taken, self._stats = self._stats, OfflineStats()
            return taken
