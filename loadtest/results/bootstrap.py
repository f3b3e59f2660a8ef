"""How much a figure of one stage would vary if the stage were run again: resampled blocks of time.

Requests of a server with a queue are not independent, a busy second makes the next one slow. So whole blocks of time
are drawn with replacement, not requests (Künsch 1989, "The jackknife and the bootstrap for general stationary
observations"). What differs between two starts of a server, or two days of a machine, no single run can know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from loadtest.results.objective import Objective
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import StageInfo
from loadtest.results.samples import arrived_within

Floats = NDArray[np.float64]

NUM_RESAMPLES = 2000
FEWEST_BLOCKS = 8
FEWEST_BEYOND = 3.0  # values beyond a percentile: with fewer, the resamples repeat the largest ones again and again
_MOST_WEIGHTS = 20_000_000  # of one array of weights, 160 MB


@dataclass(frozen=True, slots=True)
class Durations:
    """Ascending milliseconds, and the block that each belongs to: both [num_values]."""

    milliseconds: Floats
    block: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Blocks:
    """A stage cut into blocks of time. Counts are [num_blocks]."""

    window_seconds: float
    within: Floats  # requests answered within their objective
    counted: Floats  # requests that count for the share of those
    arrived: Floats
    latency: Durations
    first_token: Durations
    rejected: Durations

    @property
    def num_blocks(self) -> int:
        """Blocks of the stage, 0 for one without a window."""
        return len(self.within)

    def draws(self, seed: int) -> Floats:
        """How often each block is drawn, [NUM_RESAMPLES, num_blocks]."""
        chances = np.full(self.num_blocks, 1 / self.num_blocks)
        return np.random.default_rng(seed).multinomial(self.num_blocks, chances, NUM_RESAMPLES).astype(np.float64)


def blocks_of(stage: StageInfo, records: Sequence[Record], objective: Objective) -> Blocks:
    """The blocks of a stage; `records` are all of that stage. A block lasts a twentieth of the window, 1 to 10 s."""
    seconds = max(stage.window_seconds, 0.0)
    length = min(max(seconds / 20, 1.0), 10.0)
    # Blocks are equal parts of the window, so that no part of it weighs more.
    num_blocks = round(seconds / length)

    def place(instant: float) -> int:
        return min(int((instant - stage.warm_up_ended) / seconds * num_blocks), num_blocks - 1)

    def counts(chosen: Sequence[float]) -> Floats:
        return np.bincount([place(instant) for instant in chosen], minlength=num_blocks)[:num_blocks].astype(np.float64)

    def durations(chosen: Sequence[tuple[float, float]]) -> Durations:
        ascending = sorted((seconds * 1000, place(instant)) for instant, seconds in chosen)
        values = np.array([value for value, _ in ascending], dtype=np.float64)
        return Durations(values, np.array([block for _, block in ascending], dtype=np.int64))

    due = [record for record in records if stage.measures(record)] if num_blocks else []
    arrived = arrived_within(records, stage.warm_up_ended, stage.sending_ended) if num_blocks else []
    ended = [(record, record.latency) for record in due if record.latency is not None]
    answered = [(record, latency) for record, latency in ended if record.outcome is Outcome.ANSWERED]
    return Blocks(
        window_seconds=seconds,
        within=counts([record.scheduled for record in due if objective.is_met_by(record)]),
        counted=counts([record.scheduled for record in due if objective.counts(record)]),
        arrived=counts([record.finished for record in arrived if record.finished is not None]),
        latency=durations([(record.scheduled, latency) for record, latency in answered]),
        first_token=durations(
            [(r.scheduled, r.first_event - r.scheduled) for r, _ in answered if r.first_event is not None]
        ),
        rejected=durations([(r.scheduled, latency) for r, latency in ended if r.outcome is Outcome.REJECTED]),
    )


def resampled_rates(counts: Floats, draws: Floats, window_seconds: float) -> Floats:
    """Counts a second, [NUM_RESAMPLES]."""
    return draws @ counts / window_seconds


def resampled_shares(blocks: Blocks, draws: Floats) -> Floats:
    """Shares within the objective, [NUM_RESAMPLES]; NaN where nothing that counts was drawn."""
    with np.errstate(invalid="ignore"):
        return (draws @ blocks.within) / (draws @ blocks.counted)


def resampled_percentiles(durations: Durations, draws: Floats, percent: float) -> Floats:
    """Milliseconds at a percentile, [NUM_RESAMPLES]; NaN where no value was drawn."""
    num_values = len(durations.milliseconds)
    if not num_values:
        return np.full(len(draws), np.nan)
    parts = max(ceil(len(draws) * num_values / _MOST_WEIGHTS), 1)
    return np.concatenate([_percentiles(durations, part, percent) for part in np.array_split(draws, parts)])


def percentile(durations: Durations, percent: float) -> float | None:
    """The milliseconds at a percentile of what was observed, by the same rule."""
    if not len(durations.milliseconds):
        return None
    return float(durations.milliseconds[max(ceil(round(percent * len(durations.milliseconds) / 100, 6)), 1) - 1])


def _percentiles(durations: Durations, draws: Floats, percent: float) -> Floats:
    reached = np.cumsum(draws[:, durations.block], axis=1)  # [num_resamples, num_values]
    total = reached[:, -1:]
    ranks = np.maximum(np.ceil(np.round(percent * total / 100, 6)), 1)
    places = np.argmax(reached >= ranks, axis=1)
    return np.where(total[:, 0] > 0, durations.milliseconds[places], np.nan)
