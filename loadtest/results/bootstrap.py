"""Variation of a stage's figures, estimated by a bootstrap over blocks of time.

Requests of a server with a queue are not independent: a busy second delays the next. Therefore whole blocks of time are
drawn with replacement, not requests (Künsch 1989, "The jackknife and the bootstrap for general stationary
observations"). Variation between starts of a server or days of a machine is not covered.
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
MIN_BLOCKS = 8
MIN_BEYOND = 3.0  # values beyond a percentile; with fewer, most resamples repeat the largest values
_MAX_WEIGHTS = 20_000_000  # of one array of weights, 160 MB


@dataclass(frozen=True, slots=True)
class Durations:
    """Ascending milliseconds and the block of each value, both [num_values]."""

    milliseconds: Floats
    block: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Blocks:
    """A stage divided into blocks of time. Counts are [num_blocks]."""

    window_seconds: float
    within: Floats  # requests answered within their objective
    counted: Floats  # requests that count for the objective
    arrived: Floats
    latency: Durations
    first_token: Durations
    rejected: Durations

    @property
    def num_blocks(self) -> int:
        """Number of blocks; 0 for a stage without a window."""
        return len(self.within)

    def draws(self, seed: int) -> Floats:
        """Return how often each block is drawn, [NUM_RESAMPLES, num_blocks]."""
        chances = np.full(self.num_blocks, 1 / self.num_blocks)
        return np.random.default_rng(seed).multinomial(self.num_blocks, chances, NUM_RESAMPLES).astype(np.float64)


def blocks_of(stage: StageInfo, records: Sequence[Record], objective: Objective) -> Blocks:
    """Return the blocks of a stage from all its records. A block lasts a twentieth of the window, 1 to 10 s."""
    seconds = max(stage.window_seconds, 0.0)
    length = min(max(seconds / 20, 1.0), 10.0)
    # Blocks have equal lengths, so that every part of the window has the same weight.
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
    """Return counts per second, [NUM_RESAMPLES]."""
    return draws @ counts / window_seconds


def resampled_shares(blocks: Blocks, draws: Floats) -> Floats:
    """Return shares within the objective, [NUM_RESAMPLES]; NaN if no request that counts was drawn."""
    with np.errstate(invalid="ignore"):
        return (draws @ blocks.within) / (draws @ blocks.counted)


def resampled_percentiles(durations: Durations, draws: Floats, percent: float) -> Floats:
    """Return milliseconds at a percentile, [NUM_RESAMPLES]; NaN if no value was drawn."""
    num_values = len(durations.milliseconds)
    if not num_values:
        return np.full(len(draws), np.nan)
    parts = max(ceil(len(draws) * num_values / _MAX_WEIGHTS), 1)
    return np.concatenate([_percentiles(durations, part, percent) for part in np.array_split(draws, parts)])


def percentile(durations: Durations, percent: float) -> float | None:
    """Return the observed milliseconds at a percentile, by the same rule."""
    if not len(durations.milliseconds):
        return None
    return float(durations.milliseconds[max(ceil(round(percent * len(durations.milliseconds) / 100, 6)), 1) - 1])


def _percentiles(durations: Durations, draws: Floats, percent: float) -> Floats:
    reached = np.cumsum(draws[:, durations.block], axis=1)  # [num_resamples, num_values]
    total = reached[:, -1:]
    ranks = np.maximum(np.ceil(np.round(percent * total / 100, 6)), 1)
    places = np.argmax(reached >= ranks, axis=1)
    return np.where(total[:, 0] > 0, durations.milliseconds[places], np.nan)
