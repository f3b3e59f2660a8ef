"""Plots of a run: over the offered load, of single requests, of the server's phases, and over time."""

from collections.abc import Sequence

import numpy as np
from hdrh.histogram import HdrHistogram
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loadtest.report.drawing import (
    BLUE,
    GREEN,
    INK,
    LINE,
    MARKERS,
    ORANGE,
    PURPLE,
    QUIET,
    RED,
    SERIES,
    TEAL,
    Plot,
    label_load_axes,
    legend_above,
    log_axis,
    mark_objective,
    new_figure,
    plot_of,
    stacked_bars,
)
from loadtest.results.figures import Sample, StageTotals, Totals
from loadtest.results.percentiles import Percentiles, values_at
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import StageInfo
from loadtest.results.timeline import Timeline
from loadtest.results.totals import REST, SERVER_PHASES, trials_of

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


_CHARACTER_WIDTH = 0.0068  # of a stage's name, as a part of the plot's

_PHASE_STYLES = {
    "tokenize": (TEAL, "xx"),
    "queue": (PURPLE, "//"),
    "encode": (ORANGE, ""),
    "decode": (BLUE, ""),
    REST: (LINE, ".."),
}


def timeline_plot(timeline: Timeline, stages: Sequence[StageInfo]) -> Plot | None:
    """Draw rates, latencies and the server's metrics over the whole run."""
    if not timeline.at:
        return None
    has_metrics = any(value is not None for value in timeline.waiting)
    figure = new_figure(height=5.6 if has_metrics else 4.0, width=11.0)
    panels: list[Axes] = list(figure.subplots(3 if has_metrics else 2, 1, sharex=True))
    rates, latency = panels[0], panels[1]
    rates.plot(timeline.at, timeline.due, "-", color=QUIET, linewidth=1.2, label="due")
    rates.plot(timeline.at, timeline.answered, "-", color=GREEN, label="answered")
    if any(timeline.refused):
        rates.plot(timeline.at, timeline.refused, "--", color=PURPLE, label="rejected")
    rates.set_ylabel("requests/s")
    rates.set_ylim(bottom=0)
    latency.plot(timeline.at, _gaps(timeline.p50_ms), "-", color=TEAL, label="p50")
    latency.plot(timeline.at, _gaps(timeline.p99_ms), "-", color=PURPLE, label="p99")
    if any(timeline.p50_ms):
        log_axis(latency, room=0.5)
    latency.set_ylabel("latency, ms")
    if has_metrics:
        panels[2].plot(timeline.sampled_at, _gaps(timeline.waiting), "-", color=ORANGE, label="waiting")
        panels[2].plot(timeline.sampled_at, _gaps(timeline.rows_per_step), "--", color=BLUE, label="rows per step")
        panels[2].set_ylabel("sentences, rows")
        panels[2].set_ylim(bottom=0)
    _mark_stages(panels, stages)
    for panel in panels:
        panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        panel.grid(visible=False, axis="x")
    panels[-1].set_xlabel("seconds since the run's start")
    panels[-1].set_xlim(stages[0].started, max(stage.drained for stage in stages))
    title = "The run over time"
    how_to_read = (
        f"Bins of {timeline.bin_seconds:g} s; shaded parts are warm-ups and drains, which do not count. Within a stage "
        "every line should be level; a growing number of waiting sentences means an unsustainable load."
    )
    return plot_of(figure, "timeline", title, how_to_read, is_wide=True)


def phases_plot(totals: Totals) -> Plot | None:
    """Draw the mean time of an answered request in each phase."""
    stages = [stage for stage in totals.stages if any(name in stage.all.phases_ms for name in SERVER_PHASES)]
    if not stages:
        return None
    figure = new_figure(height=1.1 + 0.3 * len(stages))
    phases = [stage.all.phases_ms for stage in stages]
    parts = [
        (name, *_PHASE_STYLES[name], [of_stage[name].mean if name in of_stage else 0.0 for of_stage in phases])
        for name in (*SERVER_PHASES, REST)
    ]
    axes = stacked_bars(figure, [stage_label(stage) for stage in stages], parts, 5)
    axes.set_xlabel("mean of the answered, ms")
    title = "Phases of a request"
    how_to_read = (
        "Phases are measured by the server, for the slowest sentence of a request. A growing queue with level "
        "encode and decode means waiting for rows; rest is the time outside the server: network, HTTP, generator."
    )
    return plot_of(figure, "phases", title, how_to_read)


def _gaps(values: Sequence[float | None]) -> list[float]:
    """Return the values with NaN for missing ones, which interrupts the line."""
    return [float("nan") if value is None else value for value in values]


def _mark_stages(panels: Sequence[Axes], stages: Sequence[StageInfo]) -> None:
    for stage in stages:
        for panel in panels:
            for start, end in ((stage.started, stage.warm_up_ended), (stage.sending_ended, stage.drained)):
                if end > start:
                    panel.axvspan(start, end, color=LINE, alpha=0.7, linewidth=0)
    whole = max(stage.drained for stage in stages) - stages[0].started
    for stage in stages:
        # A name that would overlap the next one is left out.
        if len(stage.name) * _CHARACTER_WIDTH > (stage.drained - stage.warm_up_ended) / whole:
            continue
        panels[0].annotate(
            stage.name,
            (stage.warm_up_ended, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(1, 3),
            textcoords="offset points",
            fontsize=8,
            color=INK,
        )
