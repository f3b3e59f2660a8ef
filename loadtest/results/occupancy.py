"""Server load during a stage, computed from samples of its metrics."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from loadtest.results.figures import Occupancy
from loadtest.results.run_folder import MetricsSample

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
