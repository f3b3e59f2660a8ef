"""What a comparison finds, as it is written to JSON and read back."""

from collections.abc import Sequence
from statistics import median

from pydantic import BaseModel

from benchmarks.machine import Machine

DISTURBED = 0.05  # of the processors: above this, repetitions are marked


class Measurement(BaseModel):
    """One engine on one workload: repetition by repetition, or the reason why it did not run."""

    engine: str
    setting: str = ""
    not_run: str | None = None
    versions: dict[str, str] = {}
    start_seconds: float = 0.0
    seconds: list[float] = []
    disturbance: list[float] = []  # share of the processors that others took, for each repetition
    output_tokens: int = 0
    peak_bytes: int = 0
    bleu: float | None = None
    chrf: float | None = None
    tuned: dict[str, float] = {}  # tokens a second of every setting that was tried

    @property
    def is_disturbed(self) -> bool:
        """Whether somebody else worked during one of the repetitions."""
        return max(self.disturbance, default=0.0) > DISTURBED

    @property
    def tokens_per_second(self) -> list[float]:
        """Generated tokens, the ends of sequences not counted, by seconds; for each repetition."""
        return [self.output_tokens / seconds for seconds in self.seconds]


class WorkloadResult(BaseModel):
    """All engines on one workload."""

    workload: str
    num_sentences: int
    measurements: list[Measurement]

    def measurement(self, engine: str) -> Measurement | None:
        """That of an engine, if it took part and ran."""
        ran = (found for found in self.measurements if found.engine == engine and found.not_run is None)
        return next(ran, None)


class Comparison(BaseModel):
    """A whole run. `options` are the command line's."""

    machine: Machine
    options: dict[str, str]
    quality_signatures: list[str] = []
    workloads: list[WorkloadResult]


class Ratio(BaseModel):
    """How many times as fast one engine was as another: median, least and most over the repetitions."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}-{self.most:.2f})"


def ratio(measured: Measurement, other: Measurement) -> Ratio:
    """Of tokens a second, repetition by repetition.

    Repetitions are interleaved, so what changes slowly, such as the processor's pace, cancels out. A busy neighbour
    does not: it costs an engine whose threads wait for each other much more than one whose threads do not. An engine
    too slow for all repetitions took part in the first ones, and is compared in those.
    """
    shared = min(len(measured.seconds), len(other.seconds))
    return ratio_of(measured.tokens_per_second[:shared], other.tokens_per_second[:shared])


def ratio_of(measured: Sequence[float], other: Sequence[float]) -> Ratio:
    """Of any two series of equal length."""
    ratios = [ours / theirs for ours, theirs in zip(measured, other, strict=True)]
    return Ratio(median=median(ratios), least=min(ratios), most=max(ratios))
