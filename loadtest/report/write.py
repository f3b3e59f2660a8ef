"""Reports of a run and of a comparison: JSON, Markdown, and one HTML file without scripts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import TypeAdapter

from loadtest.report.comparison_plots import comparison_plots
from loadtest.report.drawing import Plot, house_style
from loadtest.report.headline import Line, facts_of, headline_of, objective_sentence
from loadtest.report.run_plots import load_plots, phases_plot, request_plots, timeline_plot
from loadtest.report.tables import Table, comparison_tables, tables_of
from loadtest.results.comparison import Comparison, compare
from loadtest.results.figures import Totals, to_json
from loadtest.results.records import Record
from loadtest.results.run_folder import AnswerCheckResult, RunFolder, RunInfo
from loadtest.results.thresholds import NO_THRESHOLDS, Thresholds, Verdict, verdict_of
from loadtest.results.timeline import Timeline, timeline_of
from loadtest.results.totals import totals_of


def render_markdown(
    totals: Totals, headline: Sequence[Line], facts: Sequence[tuple[str, str]], tables: Sequence[Table]
) -> str:
    """Return the content of the file."""
    lines = [f"# {title_of(totals)}", "", "| | | |", "|---|---|---|"]
    lines += [f"| {cell(line.name)} | **{cell(line.value)}** | {cell(line.meaning)} |" for line in headline]
    lines += ["", objective_sentence(totals)]
    for table in tables:
        lines += markdown_table(table)
    lines += ["", "## Circumstances", ""]
    lines += [f"- {name}: {value}" for name, value in facts]
    return "\n".join(lines) + "\n"


def title_of(totals: Totals) -> str:
    """Return the title of a report."""
    return f"Load test: {totals.label or totals.scenario or 'no name'}"


def markdown_table(table: Table) -> Iterator[str]:
    """Yield the lines of a table with its title and note."""
    yield from ("", f"## {table.title}", "")
    if table.note:
        yield from (table.note, "")
    yield f"| {' | '.join(table.header)} |"
    yield f"|---|{('---|' if table.is_text else '---:|') * (len(table.header) - 1)}"
    yield from (f"| {' | '.join(cell(text) for text in row)} |" for row in table.rows)


def cell(text: str) -> str:
    """Return the text escaped for a cell of a Markdown table."""
    for special, harmless in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("\n", " ")):
        text = text.replace(special, harmless)
    return text


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


@dataclass(frozen=True, slots=True)
class Report:
    """Content of report.json; docs/load-test-reports.md explains each key."""

    totals: Totals
    verdict: Verdict
    thresholds: Thresholds
    guard: AnswerCheckResult | None  # the key of the answer check
    run: RunInfo
    timeline: Timeline


def write_report(run: RunFolder, thresholds: Thresholds = NO_THRESHOLDS) -> Verdict:
    """Write the report of a run next to its records and return the verdict. It can be written again at any time.

    The thresholds of the run complete the given ones. Raises `BadRunFolder` or `BadRecord` for an invalid folder.
    """
    info, records, samples, answer_check = run.info(), list(run.records()), run.metrics(), run.answer_check()
    thresholds = thresholds.or_else(info.thresholds)
    totals = totals_of(info, records, samples, answer_check)
    verdict = verdict_of(totals, thresholds)
    timeline = timeline_of(info.stages, records, samples)
    headline, facts = headline_of(totals, verdict), facts_of(info, totals, samples, thresholds)
    tables = tables_of(totals, answer_check)
    report = Report(totals, verdict, thresholds, answer_check, info, timeline)
    files = {
        "totals.json": to_json(totals),
        "report.json": TypeAdapter(Report).dump_json(report, indent=2).decode() + "\n",
        "report.md": render_markdown(totals, headline, facts, tables),
        "report.html": render_html(totals, headline, facts, tables, _plots(totals, records, timeline, info)),
    }
    for name, text in files.items():
        (run.path / name).write_text(text, encoding="utf-8")
    return verdict


def _plots(totals: Totals, records: list[Record], timeline: Timeline, info: RunInfo) -> list[Plot]:
    stages = {stage.name: stage for stage in info.stages}
    measured = [record for record in records if record.stage in stages and stages[record.stage].measures(record)]
    with house_style():
        drawn = [
            *load_plots(totals),
            *request_plots(totals, measured),
            phases_plot(totals),
            timeline_plot(timeline, info.stages),
        ]
    return [plot for plot in drawn if plot is not None]


def write_comparison(runs: Sequence[RunFolder], folder: Path) -> Comparison:
    """Compare runs of one or several servers and write three files into `folder`, which is created if missing.

    The first run is the base. Raises `ValueError` for fewer than two, `BadRunFolder` or `BadRecord`.
    """
    comparison = compare(runs)
    tables = comparison_tables(comparison)
    folder.mkdir(parents=True, exist_ok=True)
    title = f"Load tests: {' · '.join(run.name for run in comparison.runs)}"
    objective = objective_sentence(comparison.runs[0].totals)
    files = {
        "comparison.json": TypeAdapter(Comparison).dump_json(comparison, indent=2).decode() + "\n",
        "comparison.md": _comparison_markdown(title, comparison, objective, tables),
        "comparison.html": render_comparison_html(title, comparison, objective, tables, comparison_plots(comparison)),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return comparison


def _comparison_markdown(title: str, comparison: Comparison, objective: str, tables: Sequence[Table]) -> str:
    lines = [f"# {cell(title)}", ""]
    if comparison.warnings:
        lines += [*(f"- **{cell(warning)}**" for warning in comparison.warnings), ""]
    lines.append(objective)
    for table in tables:
        lines += markdown_table(table)
    return "\n".join(lines) + "\n"
