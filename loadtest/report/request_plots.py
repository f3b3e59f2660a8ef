"""Plots of single requests: distribution of latency, latency against length, and streams."""

from collections.abc import Sequence

import numpy as np
from hdrh.histogram import HdrHistogram
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loadtest.report.drawing import (
    BLUE,
    MARKERS,
    ORANGE,
    PURPLE,
    QUIET,
    RED,
    SERIES,
    TEAL,
    Plot,
    legend_above,
    log_axis,
    mark_objective,
    new_figure,
    plot_of,
)
from loadtest.report.load_plots import stage_label
from loadtest.results.figures import StageTotals, Totals
from loadtest.results.percentiles import Percentiles, values_at
from loadtest.results.records import Outcome, Record

_LABELLED_PERCENTS = (0.0, 50.0, 90.0, 95.0, 99.0, 99.9)
_DRAWN_PERCENTS = (*range(1, 90), *np.arange(90, 99, 0.5).tolist(), *np.arange(99, 99.91, 0.05).tolist())
_MAX_POINTS = 1500  # each takes a hundred bytes of the page


def request_plots(totals: Totals, records: Sequence[Record]) -> list[Plot]:
    """Return the plots with data; `records` are those of the measured windows."""
    plots = []
    with_answers = [stage for stage in totals.stages if stage.histogram is not None]
    if with_answers:
        plots.append(_distribution(_curves(with_answers, totals.headline.knee_stage), totals))
    stage = typical_stage(totals)
    if stage is not None:
        plots.append(_by_length(stage, records, totals))
        if len(stage.kinds) > 1:
            plots.append(_kinds(stage, totals))
    streaming = [stage for stage in totals.stages if stage.all.first_token_ms is not None]
    if streaming:
        plots.append(_streams(streaming))
    return plots


def typical_stage(totals: Totals) -> StageTotals | None:
    """Return the stage closest to users' experience: the knee, else the first with answers."""
    at_knee = totals.stage(totals.headline.knee_stage)
    if at_knee is not None and at_knee.all.latency_ms is not None:
        return at_knee
    return next((stage for stage in totals.stages if stage.all.latency_ms is not None), None)


def _curves(stages: Sequence[StageTotals], knee_stage: str | None) -> list[StageTotals]:
    """Return at most six stages including the knee; steps of a search are dropped first. More lines are unreadable."""
    planned = [stage for stage in stages if not stage.is_search_step or stage.name == knee_stage] or list(stages)
    if len(planned) <= len(SERIES):
        return planned
    places = {int(place) for place in np.linspace(0, len(planned) - 1, len(SERIES)).round()}
    at_knee = next((place for place, stage in enumerate(planned) if stage.name == knee_stage), None)
    if at_knee is not None and at_knee not in places:
        places = (places - {min(places, key=lambda place: abs(place - at_knee))}) | {at_knee}
    return [planned[place] for place in sorted(places)]


def _distribution(stages: Sequence[StageTotals], totals: Totals) -> Plot:
    figure = new_figure(height=3.9)
    axes = figure.subplots()
    for stage, colour, marker in zip(stages, SERIES, MARKERS, strict=False):
        if stage.histogram is not None:
            line = "--" if stage.is_closed_loop else "-"
            draw_distribution(axes, stage.histogram, colour, marker, stage_label(stage), line)
    mark_objective(axes, totals.objective.milliseconds, has_label=False)
    legend_above(figure, axes, 2)
    title = "Distribution of latency"
    how_to_read = (
        "The axis below is the percentage of requests that were no slower than the line. A line that rises steeply at "
        "the right hides long waits behind a good median (dashed red: the objective)."
    )
    return plot_of(figure, "distribution", title, how_to_read)


def draw_distribution(axes: Axes, histogram: str, colour: str, marker: str, label: str, line: str = "-") -> None:
    """Draw an encoded, non-empty histogram; every further nine of a percentile has the same width."""
    decoded = HdrHistogram.decode(histogram)
    # With a hundred requests, percentiles above p99 only repeat the largest value.
    highest = 100 * (1 - 1 / decoded.get_total_count())
    shown = [percent for percent in _DRAWN_PERCENTS if percent <= highest] or [50.0]
    places, values = [_tail(percent) for percent in shown], values_at(decoded, shown)
    axes.plot(places, values, line, color=colour, marker=marker, markevery=0.12, label=label)
    axes.set_xscale("log")
    log_axis(axes)
    axes.set_xticks([_tail(p) for p in _LABELLED_PERCENTS], [f"{p:g}" for p in _LABELLED_PERCENTS])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("percentile of the answered requests")
    axes.set_ylabel("latency, ms")


def _tail(percent: float) -> float:
    """Return the position of a percentile on the axis."""
    return 1 / (1 - percent / 100)


def _by_length(stage: StageTotals, records: Sequence[Record], totals: Totals) -> Plot:
    answered = [
        record
        for record in records
        if record.stage == stage.name and record.outcome is Outcome.ANSWERED and record.latency is not None
    ]
    # Every n-th request in the order of arrival, so that the picture is reproducible.
    shown = answered[:: -(-len(answered) // _MAX_POINTS)]
    tokens = np.array([record.source_tokens for record in shown])
    figure = new_figure()
    axes = figure.subplots()
    axes.plot(tokens, [(r.latency or 0.0) * 1000 for r in shown], ".", color=TEAL, markersize=2.5, alpha=0.45)
    longest = int(max(tokens.max(), 2))
    middles = [_middle(bucket.fewest, bucket.most, longest) for bucket in stage.all.by_length]
    for name, marker, colour in (("p50", "o", BLUE), ("p95", "s", ORANGE)):
        values = [getattr(bucket.latency_ms, name) for bucket in stage.all.by_length]
        axes.plot(middles, values, "-", marker=marker, color=colour, label=name)
    steps = [1, *range(totals.objective.max_source_tokens, longest, totals.objective.max_source_tokens), longest]
    allowed = [totals.objective.allowed_ms(step) for step in steps]
    axes.step(steps, allowed, where="pre", color=RED, linestyle="--", linewidth=1.2, label="objective")
    log_axis(axes, "x")
    log_axis(axes, "y")
    estimated = ", estimated from words" if stage.all.source_tokens_estimated > 0.5 else ""
    axes.set_xlabel(f"source tokens of the request{estimated}")
    axes.set_ylabel("latency, ms")
    legend_above(figure, axes, 3)
    title = f"Latency against source length, {stage_label(stage)}"
    how_to_read = (
        "Each dot is a request; the lines are percentiles of similar lengths. Dots above the red steps missed "
        "their objective, and short requests far above their neighbours waited for long ones."
    )
    return plot_of(figure, "length", title, how_to_read)


def _middle(fewest: int, most: int | None, longest: int) -> float:
    """Return the middle of a bucket on a logarithmic axis."""
    return float(np.sqrt(max(fewest, 1) * min(most or longest, longest)))


def _kinds(stage: StageTotals, totals: Totals) -> Plot:
    kinds = [(kind, sample.latency_ms) for kind, sample in stage.kinds.items()]
    figure = new_figure(height=1.1 + 0.32 * len(kinds))
    axes = figure.subplots()
    axes.axvline(
        totals.objective.milliseconds, color=RED, linestyle="--", linewidth=1.2
    )  # first, so that it is in the range
    _ranges(axes, [times for _, times in kinds])
    axes.set_xlabel("latency of the answered, ms")
    axes.set_yticks(range(len(kinds)), [kind for kind, _ in kinds])
    _legend(figure, axes)
    title = f"Kinds of request, {stage_label(stage)}"
    how_to_read = (
        "Each kind from its median to its p99. Kinds with little work should end far to the left of those "
        "with much (dashed red: the objective of a short text)."
    )
    return plot_of(figure, "kinds", title, how_to_read)


def _streams(stages: Sequence[StageTotals]) -> Plot:
    figure = new_figure(height=1.1 + 0.32 * len(stages))
    first, gaps = figure.subplots(1, 2, sharey=True)
    _ranges(first, [stage.all.first_token_ms for stage in stages])
    _ranges(gaps, [stage.all.gap_ms for stage in stages])
    first.set_xlabel("time to first token, ms")
    gaps.set_xlabel("between tokens, ms")
    first.set_yticks(range(len(stages)), [stage_label(stage) for stage in stages])
    _legend(figure, first)
    title = "Streams: the first token, and the gaps after it"
    how_to_read = (
        "Further left is better. The first panel is the time without any text, the second shows how evenly the "
        "text grows; long bars mean that a few readers wait much longer than most."
    )
    return plot_of(figure, "streams", title, how_to_read)


_RANGE_MARKS = (("p50", "o", TEAL), ("p95", "s", BLUE), ("p99", "^", PURPLE))


def _ranges(axes: Axes, distributions: Sequence[Percentiles | None]) -> None:
    """Draw a line from median to p99 for each distribution, the first at the top."""
    for place, times in enumerate(distributions):
        if times is None:
            continue
        axes.plot([times.p50, times.p99], [place, place], "-", color=QUIET, linewidth=2.5, solid_capstyle="round")
        for name, marker, colour in _RANGE_MARKS:
            axes.plot([getattr(times, name)], [place], marker, color=colour)
    axes.set_xlim(left=0)
    axes.set_ylim(len(distributions) - 0.5, -0.5)


def _legend(figure: Figure, axes: Axes) -> None:
    handles = [axes.plot([], [], marker, color=colour, label=name)[0] for name, marker, colour in _RANGE_MARKS]
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
