"""Results of a comparison, written to JSON and read back."""

from collections.abc import Sequence
from statistics import median

from pydantic import BaseModel

from benchmarks.machine import Machine

DISTURBED = 0.05  # share of the processors; above this, repetitions are marked


class Measurement(BaseModel):
    """One engine on one workload: its repetitions, or the reason why it did not run."""

    engine: str
    setting: str = ""
    not_run: str | None = None
    versions: dict[str, str] = {}
    start_seconds: float = 0.0
    seconds: list[float] = []
    disturbance: list[float] = []  # share of the processors used by other processes, for each repetition
    output_tokens: int = 0
    peak_bytes: int = 0
    bleu: float | None = None
    chrf: float | None = None
    tuned: dict[str, float] = {}  # tokens per second of every setting that was tried

    @property
    def is_disturbed(self) -> bool:
        """Whether other processes disturbed one of the repetitions."""
        return max(self.disturbance, default=0.0) > DISTURBED

    @property
    def tokens_per_second(self) -> list[float]:
        """Generated tokens per second, without ends of sequences, for each repetition."""
        return [self.output_tokens / seconds for seconds in self.seconds]


class WorkloadResult(BaseModel):
    """All engines on one workload."""

    workload: str
    num_sentences: int
    measurements: list[Measurement]

    def measurement(self, engine: str) -> Measurement | None:
        """Return the measurement of an engine; None if it did not run."""
        ran = (found for found in self.measurements if found.engine == engine and found.not_run is None)
        return next(ran, None)


class Comparison(BaseModel):
    """Results of a run. `options` are those of the command line."""

    machine: Machine
    options: dict[str, str]
    quality_signatures: list[str] = []
    workloads: list[WorkloadResult]


class Ratio(BaseModel):
    """Speed of one engine relative to another: median, minimum and maximum over the repetitions."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}-{self.most:.2f})"


def ratio(measured: Measurement, other: Measurement) -> Ratio:
    """Return the ratio of tokens per second, repetition by repetition.

    Repetitions are interleaved, so slow changes such as the processor's clock cancel out. Other load does not: it slows
    engines whose threads wait for each other much more than others. An engine that was too slow for all repetitions is
    compared in those it ran.
    """
    shared = min(len(measured.seconds), len(other.seconds))
    return ratio_of(measured.tokens_per_second[:shared], other.tokens_per_second[:shared])


def ratio_of(measured: Sequence[float], other: Sequence[float]) -> Ratio:
    """Return the ratio of two series of equal length."""
    ratios = [ours / theirs for ours, theirs in zip(measured, other, strict=True)]
    return Ratio(median=median(ratios), least=min(ratios), most=max(ratios))
