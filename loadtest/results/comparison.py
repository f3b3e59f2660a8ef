"""Comparison of runs, figure by figure: differences, their size, and whether they exceed noise.

The first run is the base. Stages of the same name are compared. A figure is different if the 99 % interval of its
ratio, from resampled blocks of time, excludes 1 and the ratio differs from 1 by more than 2 % (half a percent for
shares).

Requests of a server with a queue are not independent: a busy second delays the next. Therefore whole blocks of time are
drawn with replacement, not requests (Künsch 1989, "The jackknife and the bootstrap for general stationary
observations"). Variation between starts of a server or days of a machine is not covered.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from loadtest.results.comparability import warnings_of, with_known_lengths
from loadtest.results.figures import StageTotals, Totals
from loadtest.results.objective import Objective
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import RunFolder, RunInfo, StageInfo
from loadtest.results.totals import arrived_within, knee, records_by_stage, totals_of, trials_of

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


CONFIDENCE = 0.99
MIN_CHANGE = 0.02
MIN_CHANGE_OF_SHARES = 0.005
_SEED = 20  # of the resampling: the same runs give the same intervals


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of the base and of another run."""

    stage: str | None  # None: the whole run
    figure: str
    unit: str  # "/s", "ms" or "share"
    more_is_better: bool
    base: float | None
    other: float | None
    ratio: float | None  # other / base; None if one of them is missing or the base is 0
    low: float | None  # of the interval of the ratio; None if there is too little to resample
    high: float | None  # None also if it has no bound, because the base may be 0
    is_different: bool  # by more than noise and by more than the minimum change
    is_better: bool | None  # of the other run; None if they are not different


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run. The base has no changes."""

    name: str
    totals: Totals
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All runs, the base first, and warnings about their comparability."""

    confidence: float
    runs: tuple[ComparedRun, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Figure:
    stage: str | None
    name: str
    unit: str
    more_is_better: bool
    value: float | None
    resampled: Floats | None  # [NUM_RESAMPLES]; None if there is too little to resample
    num_blocks: int


@dataclass(frozen=True, slots=True)
class _Read:
    info: RunInfo
    totals: Totals
    figures: tuple[_Figure, ...]


def compare(folders: Sequence[RunFolder]) -> Comparison:
    """Return the comparison of at least two runs. Raises `ValueError` for fewer, `BadRunFolder` or `BadRecord`."""
    if len(folders) < 2:
        raise ValueError("a comparison needs at least 2 runs")
    infos = [folder.info() for folder in folders]
    records = with_known_lengths(infos, [list(folder.records()) for folder in folders])
    read = []
    for place, (folder, info, of_run) in enumerate(zip(folders, infos, records, strict=True)):
        totals = totals_of(info, of_run, folder.metrics(), folder.answer_check())
        # Runs are independent, so each has its own draws.
        read.append(_Read(info, totals, tuple(_figures(info, totals, of_run, _SEED + place))))
    names = _names(read)
    runs = [ComparedRun(names[0], read[0].totals, ())]
    for name, other in zip(names[1:], read[1:], strict=True):
        runs.append(ComparedRun(name, other.totals, tuple(_changes(read[0].figures, other.figures))))
    return Comparison(CONFIDENCE, tuple(runs), tuple(warnings_of(names, infos, [run.totals for run in read])))


def _figures(info: RunInfo, totals: Totals, records: Sequence[Record], seed: int) -> Iterator[_Figure]:
    by_stage = records_by_stage(records)
    rates: list[tuple[StageTotals, Floats | None, Floats | None, int]] = []
    of_stages: list[_Figure] = []
    for place, (stage, figures) in enumerate(zip(info.stages, totals.stages, strict=True)):
        blocks = blocks_of(stage, by_stage.get(stage.name, []), totals.objective)
        draws = blocks.draws(seed * 1000 + place) if blocks.num_blocks >= MIN_BLOCKS else None
        of_stage = list(_of_stage(figures, blocks, draws))
        of_stages += of_stage
        resampled = {figure.name: figure.resampled for figure in of_stage}
        if not figures.is_closed_loop and not figures.is_late and figures.all.sent:
            rates.append((figures, resampled["goodput"], resampled["within objective"], blocks.num_blocks))
    fewest = min((num_blocks for *_, num_blocks in rates), default=0)
    yield _best_goodput(totals, [goodput for _, goodput, _, _ in rates], fewest)
    yield _knee(totals, {stage.name: share for stage, _, share, _ in rates}, fewest)
    yield from of_stages


def _of_stage(stage: StageTotals, blocks: Blocks, draws: Floats | None) -> Iterator[_Figure]:
    seconds = blocks.window_seconds

    def rates(counts: Floats) -> Floats | None:
        return None if draws is None else resampled_rates(counts, draws, seconds)

    def times(name: str, durations: Durations, percent: float) -> _Figure:
        is_enough = len(durations.milliseconds) * (1 - percent / 100) >= MIN_BEYOND
        resampled = resampled_percentiles(durations, draws, percent) if draws is not None and is_enough else None
        return _Figure(stage.name, name, "ms", False, percentile(durations, percent), resampled, blocks.num_blocks)

    shares = None if draws is None else resampled_shares(blocks, draws)
    num_blocks = blocks.num_blocks
    yield _Figure(stage.name, "goodput", "/s", True, stage.all.goodput, rates(blocks.within), num_blocks)
    yield _Figure(stage.name, "throughput", "/s", True, stage.all.throughput, rates(blocks.arrived), num_blocks)
    yield _Figure(stage.name, "within objective", "share", True, stage.all.share_within_objective, shares, num_blocks)
    yield times("p50", blocks.latency, 50)
    yield times("p95", blocks.latency, 95)
    yield times("p99", blocks.latency, 99)
    yield times("first token p95", blocks.first_token, 95)
    yield times("rejection p99", blocks.rejected, 99)


def _best_goodput(totals: Totals, resampled: Sequence[Floats | None], num_blocks: int) -> _Figure:
    drawn = [of_stage for of_stage in resampled if of_stage is not None]
    best = np.max(drawn, axis=0) if drawn else None
    return _Figure(None, "goodput, best stage", "/s", True, totals.headline.goodput, best, num_blocks)


def _knee(totals: Totals, shares: Mapping[str, Floats | None], num_blocks: int) -> _Figure:
    """Return the knee, resampled from the resampled shares of each stage."""
    drawn = [
        (trial, of_stage)
        for stage in totals.stages
        for trial in trials_of([stage])
        if (of_stage := shares.get(stage.name)) is not None
    ]
    knees = None
    if drawn:
        found = (
            knee([replace(trial, share=float(of_stage[n])) for trial, of_stage in drawn], totals.objective.share)
            for n in range(NUM_RESAMPLES)
        )
        knees = np.array([np.nan if rate is None else rate for rate in found])
    name = "highest load that meets the objective"
    return _Figure(None, name, "/s", True, totals.headline.knee_rate, knees, num_blocks)


def _changes(base: Sequence[_Figure], other: Sequence[_Figure]) -> Iterator[Change]:
    others = {(figure.stage, figure.name): figure for figure in other}
    for ours in base:
        theirs = others.get((ours.stage, ours.name))
        if theirs is None or (ours.value is None and theirs.value is None):
            continue
        ratio = theirs.value / ours.value if ours.value and theirs.value else None
        low, high = _interval(ours, theirs, ratio) if ratio is not None else (None, None)
        minimum = MIN_CHANGE_OF_SHARES if ours.unit == "share" else MIN_CHANGE
        if ratio is None:
            is_different = _is_present_in_one_only(ours, theirs)
        else:
            excludes_1 = low is not None and (low > 1 or (high is not None and high < 1))
            is_different = excludes_1 and abs(ratio - 1) > minimum
        is_more = (theirs.value or 0.0) > (ours.value or 0.0)
        yield Change(
            stage=ours.stage,
            figure=ours.name,
            unit=ours.unit,
            more_is_better=ours.more_is_better,
            base=ours.value,
            other=theirs.value,
            ratio=ratio,
            low=low,
            high=high,
            is_different=is_different,
            is_better=is_more == ours.more_is_better if is_different else None,
        )


def _interval(base: _Figure, other: _Figure, ratio: float) -> tuple[float | None, float | None]:
    if base.resampled is None or other.resampled is None:
        return None, None
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = other.resampled / base.resampled
    ratios = ratios[~np.isnan(ratios)]
    # A figure missing in half of the resamples is too rare for an interval.
    if len(ratios) < NUM_RESAMPLES / 2:
        return None, None
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], method="closest_observation")
    # Resamples of few blocks vary too little: widen the interval as Student's t is wider than the normal distribution,
    # by the first term of its expansion.
    blocks = min(base.num_blocks, other.num_blocks)
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    widened = (1 + (z * z + 1) / (4 * (blocks - 1))) * sqrt(blocks / (blocks - 1))
    low, high = ratio * (min(low / ratio, 1.0) ** widened), ratio * (max(high / ratio, 1.0) ** widened)
    return float(low), float(high) if np.isfinite(high) else None


def _is_present_in_one_only(base: _Figure, other: _Figure) -> bool:
    """Return whether a figure is above 0 in one run and certainly not in the other; there is no ratio then."""
    # A missing latency is not a short one; only rates and shares can be 0.
    if not base.more_is_better or base.resampled is None or other.resampled is None:
        return False
    differences = np.nan_to_num(other.resampled) - np.nan_to_num(base.resampled)
    low, high = np.quantile(differences, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return bool(low > 0 or high < 0)


def _names(read: Sequence[_Read]) -> list[str]:
    """Return the names of the runs: their labels, numbered unless all differ."""
    labels = [run.info.label or run.totals.scenario or "run" for run in read]
    if len(set(labels)) == len(labels):
        return labels
    return [f"{label} ({place})" for place, label in enumerate(labels, start=1)]
