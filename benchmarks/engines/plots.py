"""Plots of a comparison."""

from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.engines.results import Comparison, WorkloadResult, ratio

mpl.use("Agg")  # files, no window

OURS = "Kvasir int8"
INK, MUTED = "#1f4e79", "#9aa5b1"


def draw(comparison: Comparison, folder: Path) -> list[Path]:
    """Write `speed.png` and, with at least two engines, `ratios.png`; return their paths."""
    results = [result for result in comparison.workloads if any(m.not_run is None for m in result.measurements)]
    if not results:
        return []
    drawn = [_speed(results, folder / "speed.png")]
    if any(_ratios_of(result) for result in results):
        drawn.append(_ratios(results, folder / "ratios.png"))
    return drawn


def _speed(results: list[WorkloadResult], file: Path) -> Path:
    """Draw output tokens per second, one panel per workload, whiskers from the slowest to the fastest repetition."""
    heights = [len(result.measurements) * 0.3 + 0.9 for result in results]
    figure = Figure(figsize=(8, sum(heights)), layout="constrained")
    panels = figure.subplots(len(results), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, result in zip(panels, results, strict=True):
        ran = [measured for measured in result.measurements if measured.not_run is None]
        for place, measured in enumerate(ran):
            speeds = measured.tokens_per_second
            middle = median(speeds)
            whiskers = [[middle - min(speeds)], [max(speeds) - middle]]
            color = INK if measured.engine.startswith("Kvasir") else MUTED
            panel.barh(place, middle, xerr=whiskers, color=color, error_kw={"elinewidth": 1})
        panel.set_yticks(range(len(ran)), [measured.engine for measured in ran])
        panel.invert_yaxis()
        panel.set_title(result.workload, loc="left", fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("output tokens per second")
    figure.savefig(file, dpi=150)
    return file


def _ratios_of(result: WorkloadResult) -> list[tuple[str, float, float, float]]:
    """Return each other engine with median, minimum and maximum of the speed of Kvasir's int8 engine relative to it."""
    ours = result.measurement(OURS)
    if ours is None:
        return []
    others = [m for m in result.measurements if m.not_run is None and m.engine != OURS]
    found = [(other.engine, ratio(ours, other)) for other in others]
    return [(name, times.median, times.least, times.most) for name, times in found]


def _ratios(results: list[WorkloadResult], file: Path) -> Path:
    """Draw a dot for every workload and engine, with the range of its repetitions, on a logarithmic scale."""
    lines = [(result.workload, *times) for result in results for times in _ratios_of(result)]
    figure = Figure(figsize=(8, len(lines) * 0.25 + 1), layout="constrained")
    axes = figure.subplots()
    for place, (_, _, middle, least, most) in enumerate(lines):
        axes.plot([least, most], [place, place], color=MUTED, linewidth=2)
        axes.plot(middle, place, "o", color=INK)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(lines)), [f"{workload}: {engine}" for workload, engine, *_ in lines], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"speed of {OURS} relative to the engine")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)
    return file
