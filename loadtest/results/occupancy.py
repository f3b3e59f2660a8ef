"""How busy the server was during a stage, from the samples of its metrics."""

from collections.abc import Sequence

from loadtest.results.figures import Occupancy
from loadtest.results.run_folder import MetricsSample


def cached_share(samples: Sequence[MetricsSample]) -> float:
    """The share of the sentences that were not decoded, because their answer was known already or on its way."""
    if len(samples) < 2:
        return 0.0
    first, last = samples[0].metrics, samples[-1].metrics
    names = [name for name in last if name.startswith("kvasir_sentences_total.")]
    grown = {name.rpartition(".")[2]: last[name] - first.get(name, 0.0) for name in names}
    total = sum(grown.values())
    return 1 - grown.get("decoded", 0.0) / total if total else 0.0


WAITING = "kvasir_requests_waiting"
RUNNING = "kvasir_requests_running"
ROWS_IN_USE = "kvasir_rows_in_use_ratio"
STEP_ROWS = "kvasir_step_rows"
STEP_SECONDS = "kvasir_step_seconds"


def occupancy_of(samples: Sequence[MetricsSample], start: float, end: float) -> Occupancy | None:
    """What the samples from `start` to `end`, in seconds of the run, say; None if there are none."""
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


def mean_between(first: MetricsSample, last: MetricsSample, histogram: str) -> float | None:
    """The mean of what a histogram of the server took in between two samples; None if that is nothing."""
    count = grown(first, last, f"{histogram}_count")
    total = grown(first, last, f"{histogram}_sum")
    return total / count if count and total is not None else None


def grown(first: MetricsSample, last: MetricsSample, counter: str) -> float | None:
    """How much a counter grew; None for a server without it, or one that was started again in between."""
    if counter not in first.metrics or counter not in last.metrics:
        return None
    growth = last.metrics[counter] - first.metrics[counter]
    return growth if growth >= 0 else None


def _values(samples: Sequence[MetricsSample], gauge: str) -> list[float]:
    return [sample.metrics[gauge] for sample in samples if gauge in sample.metrics]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
