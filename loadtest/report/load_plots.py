"""Plots over the offered load: latency, throughput, and outcomes of requests."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from loadtest.report.drawing import (
    BLUE,
    GREEN,
    INK,
    LINE,
    ORANGE,
    PURPLE,
    QUIET,
    RED,
    TEAL,
    Plot,
    label_load_axes,
    log_axis,
    mark_objective,
    new_figure,
    plot_of,
    stacked_bars,
)
from loadtest.results.figures import Sample, StageTotals, Totals
from loadtest.results.records import Outcome
from loadtest.results.totals import trials_of

_PERCENTILES = (("p50", "o", "-", TEAL), ("p95", "s", "-", BLUE), ("p99", "^", "-", PURPLE), ("p999", "v", ":", QUIET))

# From good to bad, in the order of stacking.
_OUTCOMES = (
    ("in time", GREEN, ""),
    ("late", ORANGE, ""),
    ("rejected", PURPLE, "//"),
    ("timed out", RED, ""),
    ("failed", INK, "xx"),
    ("hung up", LINE, ".."),
    ("unfinished", QUIET, ""),
)


def load_plots(totals: Totals) -> list[Plot]:
    """Return the plots with data."""
    stages = sorted((s for s in totals.stages if s.has_one_rate and s.all.sent), key=lambda s: s.offered_rate)
    plots = []
    if any(stage.all.latency_ms for stage in stages):
        plots.append(_latency(stages, totals))
    if stages:
        plots.append(_throughput(stages, totals))
    if any(stage.all.sent for stage in totals.stages):
        plots.append(_outcomes(totals))
    return plots


def outcome_shares(sample: Sample) -> dict[str, float]:
    """Return the share of each outcome: in time, late, rejected and so on. They add up to 1."""
    counts = {
        "in time": sample.within_objective,
        "late": sample.outcomes[Outcome.ANSWERED] - sample.within_objective,
        "rejected": sample.outcomes[Outcome.REJECTED],
        "timed out": sample.outcomes[Outcome.TIMED_OUT],
        "failed": sample.outcomes[Outcome.FAILED],
        "hung up": sample.outcomes[Outcome.HUNG_UP],
        "unfinished": sample.outcomes[Outcome.UNFINISHED],
    }
    return {name: count / sample.sent for name, count in counts.items()} if sample.sent else {}


def stage_label(stage: StageTotals) -> str:
    """Return a stage's name with its load and, if the headline excludes it, the reason."""
    load = f"{stage.users} users" if stage.rate is None else f"{stage.rate:.4g}/s"
    if stage.ramp_to is not None:
        load = f"{load} to {stage.ramp_to:.4g}/s"
    mark = ", closed loop" if stage.is_closed_loop else ", late" if stage.is_late else ""
    return f"{stage.name} ({load}{mark})"


def _latency(stages: Sequence[StageTotals], totals: Totals) -> Plot:
    figure = new_figure()
    axes = figure.subplots()
    for name, marker, line, colour in _PERCENTILES:
        points = [(s.offered_rate, getattr(s.all.latency_ms, name)) for s in stages if s.all.latency_ms]
        label = "p99.9" if name == "p999" else name
        axes.plot([x for x, _ in points], [y for _, y in points], line, marker=marker, color=colour, label=label)
    mark_objective(axes, totals.objective.milliseconds)
    log_axis(axes)
    mark_knee(axes, totals)
    label_load_axes(figure, axes, "latency of the answered, ms", 5)
    title = "Latency against offered load"
    how_to_read = (
        "Each point is a stage. Up to the knee the lines should stay flat and below the dashed objective "
        f"(of texts up to {totals.objective.max_source_tokens} tokens; longer ones have more time). "
        "Where they bend upwards the server is saturated."
    )
    return plot_of(figure, "latency-load", title, how_to_read)


def _throughput(stages: Sequence[StageTotals], totals: Totals) -> Plot:
    figure = new_figure()
    axes = figure.subplots()
    offered = [stage.offered_rate for stage in stages]
    axes.plot([0, max(offered)], [0, max(offered)], ":", color=QUIET, linewidth=1.2, label="offered load")
    axes.plot(offered, [s.all.throughput for s in stages], "-s", color=ORANGE, label="throughput")
    axes.plot(offered, [s.all.goodput for s in stages], "-o", color=GREEN, label="goodput")
    mark_knee(axes, totals)
    axes.set_ylim(bottom=0)
    label_load_axes(figure, axes, "requests/s", 3)
    title = "Throughput and goodput against offered load"
    how_to_read = (
        "Goodput counts only requests answered within their objective. It should follow the dotted diagonal up to the "
        "knee and stay level beyond it; where it falls, the server completes requests too late."
    )
    return plot_of(figure, "throughput-load", title, how_to_read)


def _outcomes(totals: Totals) -> Plot:
    stages = [stage for stage in totals.stages if stage.all.sent]
    refused = [stage.all.rejected_ms for stage in stages]
    shares = [outcome_shares(stage.all) for stage in stages]
    figure = new_figure(height=1.0 + 0.3 * len(stages))
    parts = [(name, colour, hatch, [100 * share[name] for share in shares]) for name, colour, hatch in _OUTCOMES]
    axes = stacked_bars(figure, [stage_label(stage) for stage in stages], parts, 6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the requests of the stage")
    for place, times in enumerate(refused):
        if times is not None:
            note = f"{times.p99:.0f} ms"
            axes.annotate(note, (100, place), (4, 0), textcoords="offset points", va="center", fontsize=8, color=INK)
    title = "Outcomes of the requests"
    how_to_read = (
        "An overloaded server should reject requests at once instead of answering all of them late; "
        "the number at the right is the p99 latency of rejections."
        if any(refused)
        else "Green requests were answered within their objective; all others missed it, except those of clients that "
        "disconnected before the limit. No request was rejected."
    )
    return plot_of(figure, "outcomes", title, how_to_read)


def mark_knee(axes: Axes, totals: Totals, colour: str = INK, has_name: bool = True) -> None:
    """Draw a vertical line at the load of the knee, if there is one, with its rate if it `has_name`.

    The line is not called a knee if no higher rate was tried.
    """
    stage = totals.stage(totals.headline.knee_stage)
    if stage is None:
        return
    axes.axvline(stage.offered_rate, color=colour, linestyle="-.", linewidth=1)
    if not has_name:
        return
    is_highest = all(trial.rate <= (stage.rate or 0.0) for trial in trials_of(totals.stages))
    axes.annotate(
        f"{stage.rate:.4g}/s, the highest tried" if is_highest else f"knee {stage.rate:.4g}/s",
        (stage.offered_rate, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4, -3),
        textcoords="offset points",
        ha="right",
        va="top",
        color=colour,
        fontsize=8.5,
    )
