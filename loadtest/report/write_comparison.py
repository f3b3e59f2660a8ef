"""The report of a comparison: writes comparison.json, comparison.md and comparison.html."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from loadtest.report.comparison_plots import comparison_plots
from loadtest.report.comparison_tables import comparison_tables
from loadtest.report.headline import objective_sentence
from loadtest.report.html import render_comparison_html
from loadtest.report.markdown import cell, markdown_table
from loadtest.report.tables import Table
from loadtest.results.comparison import Comparison, compare
from loadtest.results.run_folder import RunFolder


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
        "comparison.md": _markdown(title, comparison, objective, tables),
        "comparison.html": render_comparison_html(title, comparison, objective, tables, comparison_plots(comparison)),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return comparison


def _markdown(title: str, comparison: Comparison, objective: str, tables: Sequence[Table]) -> str:
    lines = [f"# {cell(title)}", ""]
    if comparison.warnings:
        lines += [*(f"- **{cell(warning)}**" for warning in comparison.warnings), ""]
    lines.append(objective)
    for table in tables:
        lines += markdown_table(table)
    return "\n".join(lines) + "\n"
