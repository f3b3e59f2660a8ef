"""Figures as SVG in the colours of the page, so that one picture serves light and dark mode.

matplotlib supports only fixed colours. Each colour of the page has a substitute here, which `as_svg` replaces by
`var(--name)`. Text stays text: it can be read aloud, searched and copied.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from math import log10
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

# Substitutes, all different; a renderer of the SVG alone would show them.
INK = "#231e17"
QUIET = "#685f51"
LINE = "#e6dfd2"
SHEET = "#fffdf9"
BLUE = "#1f6fb5"
ORANGE = "#b85c01"
GREEN = "#1a7f4c"
RED = "#b3261f"
PURPLE = "#7a4fb6"
TEAL = "#0f7b86"

PAGE_COLOURS = {
    INK: "--ink",
    QUIET: "--quiet",
    LINE: "--line",
    SHEET: "--sheet",
    BLUE: "--blue",
    ORANGE: "--orange",
    GREEN: "--green",
    RED: "--red",
    PURPLE: "--purple",
    TEAL: "--teal",
}

# In this order for unordered series; markers serve readers without colours, and paper.
SERIES = (BLUE, ORANGE, GREEN, PURPLE, RED, TEAL)
MARKERS = ("o", "s", "^", "D", "v", "P")

WIDTH_INCHES = 6.2
HEIGHT_INCHES = 3.6

_STYLE: "dict[RcKeyType, object]" = {
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 9,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture with its title and explanation."""

    name: str  # unique on the page; part of its ids
    title: str
    how_to_read: str
    svg: str
    is_wide: bool = False


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the style of the page inside the block."""
    with mpl.rc_context(_STYLE):
        yield


def new_figure(height: float = HEIGHT_INCHES, width: float = WIDTH_INCHES) -> Figure:
    """Return an empty figure without a window or global state."""
    return Figure(figsize=(width, height), layout="constrained")


def legend_above(figure: Figure, axes: Axes, num_columns: int) -> None:
    """Put the legend of `axes` above the picture, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=num_columns, columnspacing=1.2)


def label_load_axes(figure: Figure, axes: Axes, y_label: str, num_columns: int) -> None:
    """Label axes over the offered load and put their legend above the picture. Call it after drawing."""
    axes.set_xlim(left=0)
    axes.set_xlabel("offered load, requests/s")
    axes.set_ylabel(y_label)
    legend_above(figure, axes, num_columns)


def mark_objective(axes: Axes, milliseconds: float, has_label: bool = True) -> None:
    """Draw the objective as a horizontal line; its entry in the legend is optional."""
    label = f"objective, {milliseconds:g} ms" if has_label else None
    axes.axhline(milliseconds, color=RED, linestyle="--", linewidth=1.2, label=label)


def stacked_bars(
    figure: Figure, names: Sequence[str], parts: Sequence[tuple[str, str, str, Sequence[float]]], num_columns: int
) -> Axes:
    """Draw a stacked bar for each name, the first at the top, and return the axes.

    A part has a label, a colour, a hatch and a length in each bar. Parts without any length are left out.
    """
    axes = figure.subplots()
    left = [0.0] * len(names)
    for label, colour, hatch, lengths in parts:
        if any(lengths):
            axes.barh(
                range(len(names)),
                lengths,
                left=left,
                label=label,
                height=0.65,
                color=colour,
                hatch=hatch,
                edgecolor=QUIET,
                linewidth=0.3,
            )
        left = [a + b for a, b in zip(left, lengths, strict=True)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    legend_above(figure, axes, num_columns)
    return axes


def plot_of(figure: Figure, name: str, title: str, how_to_read: str, is_wide: bool = False) -> Plot:
    """Return the finished figure for the page; screen readers read its title."""
    return Plot(name, title, how_to_read, as_svg(figure, name, title), is_wide)


def as_svg(figure: Figure, name: str, description: str) -> str:
    """Return the figure as an `<svg>` element for the page. Equal figures give equal text.

    `name` makes its ids unique on the page; screen readers read `description`.
    """
    out = StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    for colour, variable in PAGE_COLOURS.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(#|xlink:href="#)', rf"\1{name}-", svg)
    # The page sets the size; the viewBox keeps the proportions.
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg", f'<svg role="img" aria-label="{_attribute(description)}"', 1)


def log_axis(axes: Axes, which: str = "y", room: float = 1.0) -> None:
    """Make an axis logarithmic, with labels like 50, 100, 200 instead of powers of ten.

    Call it after drawing: the range decides the number of labels. `room` is the length of the axis relative to a
    normal figure.
    """
    axes.set(**{f"{which}scale": "log"})
    low, high = axes.get_ylim() if which == "y" else axes.get_xlim()
    decades = log10(high / low) / room
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if decades < 0.9 else (1.0, 2.0, 5.0) if decades < 3 else (1.0,)
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_locator(LogLocator(base=10, subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
