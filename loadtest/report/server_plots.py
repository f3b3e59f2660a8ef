"""Plots of the run over time, and of the server's phases."""

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
    TEAL,
    Plot,
    log_axis,
    new_figure,
    plot_of,
    stacked_bars,
)
from loadtest.report.load_plots import stage_label
from loadtest.results.figures import Totals
from loadtest.results.run_folder import StageInfo
from loadtest.results.timeline import Timeline
from loadtest.results.totals import REST, SERVER_PHASES

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
