"""The load of a run over time, warm-ups and drains included, and the server's load during a stage."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadtest.results.figures import Occupancy
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import MetricsSample, StageInfo

WAITING = "kvasir_requests_waiting"
RUNNING = "kvasir_requests_running"
ROWS_IN_USE = "kvasir_rows_in_use_ratio"
STEP_ROWS = "kvasir_step_rows"
STEP_SECONDS = "kvasir_step_seconds"
SENTENCES = "kvasir_sentences_total."  # a series for each outcome


def occupancy_of(samples: Sequence[MetricsSample], start: float, end: float) -> Occupancy | None:
    """Return the occupancy between `start` and `end`, in seconds of the run; None without a sample in between."""
    inside = [sample for sample in samples if start <= sample.at <= end]
    if not inside:
        return None
    waiting, running, in_use = (_values(inside, name) for name in (WAITING, RUNNING, ROWS_IN_USE))
    steps = grown(inside[0], inside[-1], f"{STEP_SECONDS}_count")
    elapsed = inside[-1].at - inside[0].at
    step_seconds = mean_between(inside[0], inside[-1], STEP_SECONDS)
    return Occupancy(
        num_samples=len(inside),
        mean_waiting=_mean(waiting),
        max_waiting=max(waiting, default=None),
        mean_running=_mean(running),
        rows_per_step=mean_between(inside[0], inside[-1], STEP_ROWS),
        steps_per_second=steps / elapsed if steps is not None and elapsed > 0 else None,
        step_ms=None if step_seconds is None else step_seconds * 1000,
        rows_in_use=_mean(in_use),
    )


def cached_share(samples: Sequence[MetricsSample]) -> float:
    """Return the share of sentences answered from the server's cache or joined with one in flight, 0 to 1.

    A counter that fell shows that the server was restarted within the run; its new counters began at zero.
    """
    growth: Counter[str] = Counter()
    for earlier, later in pairwise(_sentence_counts(sample) for sample in samples):
        is_restarted = any(later[outcome] < count for outcome, count in earlier.items())
        growth += later if is_restarted else later - earlier
    total = growth.total()
    return 1 - growth["decoded"] / total if total else 0.0


def mean_between(first: MetricsSample, last: MetricsSample, histogram: str) -> float | None:
    """Return the mean of a histogram's values between two samples; None if there are none."""
    count = grown(first, last, f"{histogram}_count")
    total = grown(first, last, f"{histogram}_sum")
    return total / count if count and total is not None else None


def grown(first: MetricsSample, last: MetricsSample, counter: str) -> float | None:
    """Return the growth of a counter; None if the server lacks it or was restarted in between."""
    if counter not in first.metrics or counter not in last.metrics:
        return None
    growth = last.metrics[counter] - first.metrics[counter]
    return growth if growth >= 0 else None


def _sentence_counts(sample: MetricsSample) -> Counter[str]:
    """Return the number of sentences by outcome: decoded, cached, coalesced."""
    counts = {name: value for name, value in sample.metrics.items() if name.startswith(SENTENCES)}
    return Counter({name.removeprefix(SENTENCES): round(value) for name, value in counts.items()})


def _values(samples: Sequence[MetricsSample], gauge: str) -> list[float]:
    return [sample.metrics[gauge] for sample in samples if gauge in sample.metrics]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


# The number of points that a plot can show: an hour has bins of 20 seconds.
_MAX_BINS = 200
_BIN_SECONDS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Rates and latencies in bins of equal length; `at` is the middle of each, in seconds of the run.

    Latencies are those of requests due in the bin; None if none was answered. The server's figures have their own
    instants.
    """

    bin_seconds: float
    at: tuple[float, ...]
    due: tuple[float, ...]  # requests per second
    answered: tuple[float, ...]  # answers received per second
    refused: tuple[float, ...]  # rejections received per second
    p50_ms: tuple[float | None, ...]
    p99_ms: tuple[float | None, ...]
    sampled_at: tuple[float, ...]
    waiting: tuple[float | None, ...]
    rows_per_step: tuple[float | None, ...]  # since the sample before


def timeline_of(stages: Sequence[StageInfo], records: Sequence[Record], samples: Sequence[MetricsSample]) -> Timeline:
    """Return the timeline of a run, from its first stage to the end of the last drain."""
    start = min((stage.started for stage in stages), default=0.0)
    end = max((stage.drained for stage in stages), default=0.0)
    bin_seconds = next((b for b in _BIN_SECONDS if (end - start) / b <= _MAX_BINS), _BIN_SECONDS[-1])
    num_bins = max(int(np.ceil((end - start) / bin_seconds)), 0)
    edges = start + bin_seconds * np.arange(num_bins + 1, dtype=np.float64)  # [num_bins + 1]
    answered = [r for r in records if r.outcome is Outcome.ANSWERED and r.finished is not None]
    refused = [r for r in records if r.outcome is Outcome.REJECTED and r.finished is not None]
    p50, p99 = _percentiles(answered, edges)
    return Timeline(
        bin_seconds=bin_seconds,
        at=tuple((edges[:-1] + bin_seconds / 2).tolist()),
        due=_rates([record.scheduled for record in records], edges),
        answered=_rates([r.finished for r in answered if r.finished is not None], edges),
        refused=_rates([r.finished for r in refused if r.finished is not None], edges),
        p50_ms=p50,
        p99_ms=p99,
        sampled_at=tuple(sample.at for sample in samples),
        waiting=tuple(sample.metrics.get(WAITING) for sample in samples),
        rows_per_step=(None, *(mean_between(one, other, STEP_ROWS) for one, other in pairwise(samples)))[
            : len(samples)
        ],
    )


def _rates(instants: Sequence[float], edges: NDArray[np.float64]) -> tuple[float, ...]:
    if len(edges) < 2:
        return ()
    counts, _ = np.histogram(np.array(instants, dtype=np.float64), bins=edges)
    return tuple((counts / (edges[1] - edges[0])).tolist())


def _percentiles(
    answered: Sequence[Record], edges: NDArray[np.float64]
) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    due = np.array([record.scheduled for record in answered])  # [num_answered]
    latency_ms = np.array([record.latency or 0.0 for record in answered]) * 1000
    bins = np.searchsorted(edges, due, side="right") - 1
    values = [latency_ms[bins == place] for place in range(len(edges) - 1)]
    p50, p99 = (
        tuple(
            float(np.percentile(inside, percent, method="inverted_cdf")) if inside.size else None for inside in values
        )
        for percent in (50, 99)
    )
    return p50, p99
