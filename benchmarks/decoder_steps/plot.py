"""Step times as values and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import BaseModel

from benchmarks.machine import Machine


class Steps(BaseModel):
    """Milliseconds per step from token `begin` to `end` with `rows` rows, by engine and repetition."""

    rows: int
    begin: int
    end: int
    milliseconds: dict[str, list[float]] = {}


class StepTimes(BaseModel):
    """Results of a run."""

    machine: Machine
    model: str
    threads: int
    by_rows: list[Steps]
    by_length: list[Steps]
    not_run: dict[str, str]


def draw(times: StepTimes, file: Path) -> None:
    """Draw milliseconds per step over rows and over cached tokens, with bars from minimum to maximum."""
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    by_rows, by_length = figure.subplots(1, 2)
    _lines(by_rows, times.by_rows, [steps.rows for steps in times.by_rows], "rows")
    rows = times.by_length[0].rows
    _lines(by_length, times.by_length, [steps.end for steps in times.by_length], f"cached tokens, {rows} rows")
    by_rows.set_ylabel("milliseconds per step")
    by_rows.legend(frameon=False)
    figure.savefig(file, dpi=150)


def _lines(axes: Axes, series: Sequence[Steps], places: list[int], label: str) -> None:
    for name in series[0].milliseconds:
        measured = [steps.milliseconds[name] for steps in series]
        middle = [median(each) for each in measured]
        below = [center - min(each) for center, each in zip(middle, measured, strict=True)]
        above = [max(each) - center for center, each in zip(middle, measured, strict=True)]
        axes.errorbar(places, middle, yerr=[below, above], marker="o", capsize=2, label=name)
    axes.set_xlabel(label)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
