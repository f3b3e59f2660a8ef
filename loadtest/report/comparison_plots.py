"""Plots of a comparison: over the offered load, of one stage, and of every ratio."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from loadtest.report.drawing import (
    GREEN,
    INK,
    MARKERS,
    QUIET,
    RED,
    SERIES,
    Plot,
    house_style,
    label_load_axes,
    legend_above,
    log_axis,
    mark_objective,
    new_figure,
    plot_of,
)
from loadtest.report.run_plots import draw_distribution, mark_knee, typical_stage
from loadtest.results.comparison import Change, ComparedRun, Comparison
from loadtest.results.figures import StageTotals

_RATIOS_SHOWN = ("goodput", "within objective", "p50", "p95", "p99", "first token p95")


def comparison_plots(comparison: Comparison) -> list[Plot]:
    """Return the plots with data."""
    with house_style():
        plots = []
        if any(_by_load(run) for run in comparison.runs):
            plots += [_goodput(comparison), _latency(comparison)]
        shared = _shared_stage(comparison)
        if shared is not None:
            plots.append(_distributions(comparison, shared))
        base = comparison.runs[0].name
        ratios = [_ratios(run, base, place) for place, run in enumerate(comparison.runs[1:], start=1)]
        return [*plots, *(plot for plot in ratios if plot is not None)]


def _by_load(run: ComparedRun) -> list[StageTotals]:
    stages = [stage for stage in run.totals.stages if stage.has_one_rate and stage.all.sent]
    return sorted(stages, key=lambda stage: stage.offered_rate)


def _goodput(comparison: Comparison) -> Plot:
    figure = new_figure()
    axes = figure.subplots()
    for run, colour, marker in _run_styles(comparison):
        stages = _by_load(run)
        if not stages:
            continue
        values = [stage.all.goodput for stage in stages]
        axes.plot([s.offered_rate for s in stages], values, "-", marker=marker, color=colour, label=run.name)
        mark_knee(axes, run.totals, colour, has_name=False)
    limit = max(axes.get_xlim()[1], 1.0)
    axes.plot([0, limit], [0, limit], ":", color=QUIET, linewidth=1.2)
    axes.set_xlim(right=limit)
    axes.set_ylim(0, 1.15 * max(stage.all.goodput for run in comparison.runs for stage in _by_load(run)) or None)
    label_load_axes(figure, axes, "goodput, requests/s", 2)
    title = "Goodput against offered load"
    how_to_read = (
        "Higher is better. Beyond the knee (the vertical line of each run's colour) a good server stays level; on the "
        "dotted diagonal every request is answered in time."
    )
    return plot_of(figure, "goodput", title, how_to_read)


def _latency(comparison: Comparison) -> Plot:
    figure = new_figure()
    axes = figure.subplots()
    for run, colour, marker in _run_styles(comparison):
        points = [(s.offered_rate, s.all.latency_ms) for s in _by_load(run) if s.all.latency_ms]
        if not points:
            continue
        loads = [load for load, _ in points]
        axes.plot(loads, [t.p95 for _, t in points], "-", marker=marker, color=colour, label=f"{run.name}, p95")
        axes.plot(loads, [t.p99 for _, t in points], "--", marker=marker, color=colour, fillstyle="none")
    mark_objective(axes, comparison.runs[0].totals.objective.milliseconds)
    log_axis(axes)
    label_load_axes(figure, axes, "latency of the answered, ms", 2)
    title = "Latency against offered load"
    how_to_read = (
        "Lower is better; dashed lines with empty marks are p99. Only answered requests have a latency, so a server "
        "that rejects many requests looks quick here but not in goodput."
    )
    return plot_of(figure, "latency", title, how_to_read)


def _shared_stage(comparison: Comparison) -> str | None:
    """Return the typical stage of the base, if all runs have it."""
    stage = typical_stage(comparison.runs[0].totals)
    if stage is None:
        return None
    others = [run.totals.stage(stage.name) for run in comparison.runs]
    return stage.name if all(other is not None and other.histogram is not None for other in others) else None


def _distributions(comparison: Comparison, name: str) -> Plot:
    figure = new_figure(height=3.9)
    axes = figure.subplots()
    for run, colour, marker in _run_styles(comparison):
        stage = run.totals.stage(name)
        if stage is not None and stage.histogram is not None:
            draw_distribution(axes, stage.histogram, colour, marker, run.name)
    mark_objective(axes, comparison.runs[0].totals.objective.milliseconds, has_label=False)
    legend_above(figure, axes, 2)
    title = f"Distribution of latency, stage {name}"
    how_to_read = (
        "The same stage of every run. The axis below is the percentage of requests that were no slower than the line; "
        "lines that differ only at the right differ for few users, but strongly."
    )
    return plot_of(figure, "distributions", title, how_to_read)


def _ratios(run: ComparedRun, base: str, place: int) -> Plot | None:
    """Return a panel for each figure, a line for each stage."""
    changes = {(change.stage, change.figure): change for change in run.changes if change.ratio and change.low}
    figures = [name for name in _RATIOS_SHOWN if any(figure == name for _, figure in changes)]
    stages = [stage.name for stage in run.totals.stages if any((stage.name, name) in changes for name in figures)]
    if not stages:
        return None
    figure = new_figure(height=1.1 + 0.27 * len(stages), width=11.0)
    panels: list[Axes] = list(figure.subplots(1, len(figures), sharey=True, squeeze=False)[0])
    for name, axes in zip(figures, panels, strict=True):
        axes.axvline(1.0, color=INK, linewidth=1)
        for line, stage in enumerate(stages):
            change = changes.get((stage, name))
            if change is not None:
                _draw_change(axes, change, line)
        log_axis(axes, "x", room=0.3)
        axes.set_title(name, fontsize=9)
    panels[0].set_yticks(range(len(stages)), stages)
    panels[0].set_ylim(len(stages) - 0.5, -0.5)
    figure.supxlabel(f"{run.name} / {base}", fontsize=9)
    title = f"{run.name} against {base}"
    how_to_read = (
        "Each bar is the 99 % interval of a ratio. Bars across the line at 1 (grey, round) show no more than noise; "
        "green diamonds are better and red ones worse."
    )
    return plot_of(figure, f"ratios-{place}", title, how_to_read, is_wide=True)


def _draw_change(axes: Axes, change: Change, line: int) -> None:
    assert change.ratio
    assert change.low
    colour = QUIET if change.is_better is None else GREEN if change.is_better else RED
    axes.plot([change.low, change.high or change.ratio], [line, line], "-", color=colour, linewidth=2)
    axes.plot([change.ratio], [line], "o" if change.is_better is None else "D", color=colour)


def _run_styles(comparison: Comparison) -> Sequence[tuple[ComparedRun, str, str]]:
    """Return each run with its colour and marker; they repeat after six."""
    return [
        (run, SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)]) for place, run in enumerate(comparison.runs)
    ]
