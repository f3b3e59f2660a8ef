"""Observers of an engine and its cache, for the statistics of an offline translation."""

import threading

from server.cli.translate.stats import OfflineStats
from server.interface.engine_client import SentenceOutcome


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
