"""Reports as HTML: one file without scripts and without other files."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loadtest.report.drawing import Plot
from loadtest.report.headline import Line, objective_sentence
from loadtest.report.markdown import title_of
from loadtest.report.tables import Table
from loadtest.results.comparison import Comparison
from loadtest.results.figures import Totals

_FOLDER = Path(__file__).parent


def render_html(
    totals: Totals,
    headline: Sequence[Line],
    facts: Sequence[tuple[str, str]],
    tables: Sequence[Table],
    plots: Sequence[Plot],
) -> str:
    """Return the page of one run."""
    return (
        _templates()
        .get_template("report.html.jinja")
        .render(
            title=title_of(totals),
            headline=headline,
            objective=objective_sentence(totals),
            facts=facts,
            tables=tables,
            plots=plots,
            style=_style(),
        )
    )


def render_comparison_html(
    title: str, comparison: Comparison, objective: str, tables: Sequence[Table], plots: Sequence[Plot]
) -> str:
    """Return the page of several runs."""
    return (
        _templates()
        .get_template("comparison.html.jinja")
        .render(
            title=title,
            warnings=comparison.warnings,
            objective=objective,
            tables=tables,
            plots=plots,
            style=_style(),
        )
    )


@cache
def _templates() -> Environment:
    # Names, reasons and texts come from outside: everything except the plots is escaped.
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["drawn"] = _drawn
    return environment


def _drawn(plot: Plot) -> Markup:
    return Markup(plot.svg)  # noqa: S704 - matplotlib escapes every label


@cache
def _style() -> Markup:
    return Markup((_FOLDER / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - a file of this package
