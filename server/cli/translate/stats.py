"""Statistics of an offline translation."""

from dataclasses import dataclass


@dataclass(slots=True)
class OfflineStats:
    """Statistics of a run. Tokens include the end of every sentence; `seconds` exclude the loading of the model.

    `sentences` is the sum of `decoded`, `cached` (decoded earlier) and `coalesced` (joined an identical one in flight).
    """

    lines: int = 0
    sentences: int = 0
    decoded: int = 0
    cached: int = 0
    coalesced: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    steps: int = 0
    rows: int = 0  # of all steps
    seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Target tokens per second."""
        return self.target_tokens / self.seconds if self.seconds else 0.0

    @property
    def rows_per_step(self) -> float:
        """Mean number of rows in a decoder step, over all engines."""
        return self.rows / self.steps if self.steps else 0.0

    def add(self, other: "OfflineStats") -> None:
        """Add the counts of a part of the run."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_COUNTS = ("lines", "sentences", "decoded", "cached", "coalesced", "source_tokens", "target_tokens", "steps", "rows")
