"""Timeline of a whole run, including warm-ups and drains."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadtest.results.occupancy import STEP_ROWS, WAITING, mean_between
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import MetricsSample, StageInfo

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
