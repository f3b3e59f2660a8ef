"""The tables of a report and of a comparison, and their numbers as text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from loadtest.report.run_plots import stage_label, typical_stage
from loadtest.results.comparison import Change, Comparison
from loadtest.results.figures import Sample, StageTotals, Totals
from loadtest.results.percentiles import Percentiles
from loadtest.results.records import Outcome
from loadtest.results.run_folder import AnswerCheckResult
from loadtest.results.thresholds import ERRORS
from loadtest.results.totals import REST, SERVER_PHASES

NOTHING = "–"

# Marks of a comparison.
BETTER = "▲"
WORSE = "▼"
SAME = "≈"


def milliseconds(value: float | None) -> str:
    """Return three digits below 100 ms, whole milliseconds above."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Return a rate per second."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """Return a share as a percentage. Only 1 is 100 %, and only 0 is 0 %."""
    if share is None:
        return NOTHING
    if not 0 < share < 1:
        return f"{share:.0%}"
    return f"{min(max(100 * share, 0.1), 99.9):.1f}".removesuffix(".0") + "%"


def count(value: int | None) -> str:
    """Return a count with separators of thousands."""
    return NOTHING if value is None else f"{value:,}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts. The first column names the subject of a row."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_text: bool = False  # columns contain words, not numbers


def tables_of(totals: Totals, answer_check: AnswerCheckResult | None) -> list[Table]:
    """Return the tables with rows."""
    tables = [
        _stages(totals.stages),
        _latencies(totals.stages),
        _kinds(totals.stages),
        _streams(totals.stages),
        _phases(totals.stages),
        _server(totals.stages),
        _lengths(typical_stage(totals)),
        _reasons(totals.stages),
        _differences(answer_check),
    ]
    return [table for table in tables if table.rows]


def _stages(stages: Sequence[StageTotals]) -> Table:
    header = (
        *("stage", "offered /s", "sent", "throughput /s", "goodput /s", "within objective", "p95 ms"),
        *("rejected", "errors", "hung up", "lag p99 ms", "seconds"),
    )
    rows = tuple(
        (
            stage_label(stage),
            rate(stage.offered_rate),
            count(stage.all.sent),
            rate(stage.all.throughput),
            rate(stage.all.goodput),
            percent(stage.all.share_within_objective),
            milliseconds(stage.all.latency_ms.p95 if stage.all.latency_ms else None),
            _of(stage.all, Outcome.REJECTED),
            _errors(stage.all),
            _of(stage.all, Outcome.HUNG_UP),
            NOTHING if stage.is_closed_loop else milliseconds(stage.lag_ms.p99 if stage.lag_ms else None),
            f"{stage.window_seconds:.0f}",
        )
        for stage in stages
    )
    note = (
        "Requests due in the measured window, without warm-up and drain. Throughput counts answers received "
        "within the window, goodput those in time. In a closed loop users wait for an answer before the next "
        "request, so a slow server receives fewer: headline and knee exclude such stages. Errors failed, timed "
        "out or were never answered."
    )
    return Table("Stages", note, header, rows)


def _latencies(stages: Sequence[StageTotals]) -> Table:
    spreads = _spreads(stages, lambda of_stage: (("answered", of_stage.latency_ms), ("rejected", of_stage.rejected_ms)))
    note = (
        "Milliseconds from the instant a request was due to its last byte. p99.9 of fewer than 1,000 requests, "
        "and p99 of fewer than 100, is the slowest one."
    )
    return Table("Latency", note, ("stage", "requests", "number", *_SPREAD), spreads)


def _kinds(stages: Sequence[StageTotals]) -> Table:
    header = (
        "stage",
        "kind",
        "sent",
        "goodput /s",
        "within objective",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "rejected",
        "errors",
    )
    rows = tuple(
        (
            stage_label(stage),
            kind,
            count(sample.sent),
            rate(sample.goodput),
            percent(sample.share_within_objective),
            *(milliseconds(value) for value in _three(sample.latency_ms)),
            _of(sample, Outcome.REJECTED),
            _errors(sample),
        )
        for stage in stages
        if len(stage.kinds) > 1
        for kind, sample in stage.kinds.items()
    )
    return Table("Kinds of request", "The same stages by kind.", header, rows)


def _streams(stages: Sequence[StageTotals]) -> Table:
    spreads = _spreads(
        stages, lambda of_stage: (("first token", of_stage.first_token_ms), ("between tokens", of_stage.gap_ms))
    )
    note = "Milliseconds, of streams that were answered; the first token counts from the instant the request was due."
    return Table("Streams", note, ("stage", "time", "number", *_SPREAD), spreads)


def _phases(stages: Sequence[StageTotals]) -> Table:
    named = [name for name in (*SERVER_PHASES, REST) if any(name in stage.all.phases_ms for stage in stages)]
    rows = tuple(
        (stage_label(stage), *(_mean_and_p99(stage.all.phases_ms.get(name)) for name in named))
        for stage in stages
        if stage.all.phases_ms
    )
    note = "Mean (p99) in milliseconds, by the server's clock; rest is the client's latency minus these four."
    return Table("Phases", note, ("stage", *named), rows)


def _server(stages: Sequence[StageTotals]) -> Table:
    header = (
        "stage",
        "waiting, mean",
        "waiting, most",
        "running, mean",
        "rows per step",
        "steps /s",
        "step ms",
        "rows in use",
    )
    rows = tuple(
        (
            stage_label(stage),
            rate(stage.occupancy.mean_waiting),
            NOTHING if stage.occupancy.max_waiting is None else f"{stage.occupancy.max_waiting:.0f}",
            rate(stage.occupancy.mean_running),
            rate(stage.occupancy.rows_per_step),
            rate(stage.occupancy.steps_per_second),
            milliseconds(stage.occupancy.step_ms),
            percent(stage.occupancy.rows_in_use),
        )
        for stage in stages
        if stage.occupancy is not None
    )
    return Table("The server's metrics", "From /metrics, once a second within the measured window.", header, rows)


def _lengths(stage: StageTotals | None) -> Table:
    header = ("source tokens", "answered", "within objective", *_SPREAD)
    rows = tuple(
        (
            f"{bucket.fewest} and more" if bucket.most is None else f"{bucket.fewest} to {bucket.most}",
            count(bucket.latency_ms.count),
            percent(bucket.share_within_objective),
            *_spread(bucket.latency_ms),
        )
        for bucket in (stage.all.by_length if stage else ())
    )
    note = f"Milliseconds; answered requests of {stage_label(stage)}." if stage else ""
    return Table("Latency by source length", note, header, rows)


def _reasons(stages: Sequence[StageTotals]) -> Table:
    rows = tuple(
        (stage_label(stage), reason, count(number)) for stage in stages for reason, number in stage.all.reasons.items()
    )
    return Table("Requests without an answer", "", ("stage", "reason", "requests"), rows)


def _differences(answer_check: AnswerCheckResult | None) -> Table:
    rows = tuple(
        (one.stage, str(one.number), one.text, one.offline, one.under_load)
        for one in (answer_check.different if answer_check else ())
    )
    header = ("stage", "request", "text", "answer of the idle server", "answer under load")
    return Table("Answers that differ", "At most 20 are shown.", header, rows, is_text=True)


_SPREAD = ("mean", "p50", "p90", "p95", "p99", "p99.9", "max")


def _spreads(
    stages: Sequence[StageTotals], durations: Callable[[Sample], Iterable[tuple[str, Percentiles | None]]]
) -> tuple[tuple[str, ...], ...]:
    """Return a row for each of the named durations that a stage has."""
    return tuple(
        (stage_label(stage), what, count(times.count), *_spread(times))
        for stage in stages
        for what, times in durations(stage.all)
        if times is not None
    )


def _spread(times: Percentiles) -> tuple[str, ...]:
    values = (times.mean, times.p50, times.p90, times.p95, times.p99, times.p999, times.max)
    return tuple(milliseconds(value) for value in values)


def _three(times: Percentiles | None) -> tuple[float | None, ...]:
    return (times.p50, times.p95, times.p99) if times else (None, None, None)


def _mean_and_p99(times: Percentiles | None) -> str:
    return NOTHING if times is None else f"{milliseconds(times.mean)} ({milliseconds(times.p99)})"


def _of(sample: Sample, outcome: Outcome) -> str:
    return count(sample.outcomes[outcome])


def _errors(sample: Sample) -> str:
    return count(sum(sample.outcomes[outcome] for outcome in ERRORS))


RULE = (
    "The first run is the base. Ratios are other / base, with their 99 % interval from resampled blocks of time. "
    f"{BETTER} better and {WORSE} worse mark ratios whose interval excludes 1 and which differ from 1 by more than 2 % "
    f"(shares: 0.5 %); {SAME} is within noise. Noise means variation within a run; variation between starts or days "
    "needs repeated runs. A ratio without an interval is based on too few requests."
)


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return the headline of each run, then all changes."""
    return [table for table in (_headlines(comparison), _change_table(comparison)) if table.rows]


def value_of(change: Change, value: float | None) -> str:
    """Return a figure as text."""
    return {"/s": rate, "ms": milliseconds, "share": percent}[change.unit](value)


def ratio_of(change: Change) -> str:
    """Return the ratio, its interval, and the mark."""
    if change.ratio is None:
        return NOTHING if change.is_better is None else BETTER if change.is_better else WORSE
    if change.low is None:
        return f"× {change.ratio:.2f}"
    high = "∞" if change.high is None else f"{change.high:.2f}"
    mark = SAME if change.is_better is None else BETTER if change.is_better else WORSE
    return f"× {change.ratio:.2f} ({change.low:.2f} to {high}) {mark}"


def _headlines(comparison: Comparison) -> Table:
    rows = []
    for run in comparison.runs:
        headline = run.totals.headline
        changes = {change.figure: change for change in run.changes if change.stage is None}
        ratios = [ratio_of(change) for change in changes.values()] or ["base"] * 2
        rows.append(
            (
                run.name,
                rate(headline.goodput),
                ratios[0],
                rate(headline.knee_rate),
                ratios[1] if len(ratios) > 1 else NOTHING,
                "INVALID" if headline.is_void else "valid",
                percent(headline.guard_share),
                percent(headline.generator_cpu_share),
            )
        )
    header = (
        *("run", "goodput /s", "ratio", "highest load that meets the objective /s", "ratio"),
        *("validity", "same answers as when idle", "generator's share of the machine"),
    )
    return Table("The runs", RULE, header, tuple(rows))


def _change_table(comparison: Comparison) -> Table:
    base, *others = comparison.runs
    by_figure = [{(change.stage, change.figure): change for change in run.changes} for run in others]
    keys = list(dict.fromkeys(key for changes in by_figure for key in changes if key[0] is not None))
    rows = []
    for stage, figure in keys:
        changes = [of_run.get((stage, figure)) for of_run in by_figure]
        known = next(change for change in changes if change is not None)
        cells = [
            text
            for change in changes
            for text in ((value_of(change, change.other), ratio_of(change)) if change else (NOTHING, NOTHING))
        ]
        unit = "" if known.unit == "share" else f" {known.unit}"
        rows.append((stage or "", f"{figure}{unit}", value_of(known, known.base), *cells))
    header = ("stage", "figure", base.name, *(name for run in others for name in (run.name, "ratio")))
    note = "Stages with the same name. Warnings above list different loads."
    return Table("Figure by figure", note, header, tuple(rows))
