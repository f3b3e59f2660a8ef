"""A report as Markdown: the headline and every table, without plots."""

from collections.abc import Iterator, Sequence

from loadtest.report.headline import Line, objective_sentence
from loadtest.report.tables import Table
from loadtest.results.figures import Totals


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
