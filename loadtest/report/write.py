"""The report of a run: writes totals.json, report.json, report.md and report.html into its folder."""

from dataclasses import dataclass

from pydantic import TypeAdapter

from loadtest.report.drawing import Plot, house_style
from loadtest.report.headline import facts_of, headline_of
from loadtest.report.html import render_html
from loadtest.report.load_plots import load_plots
from loadtest.report.markdown import render_markdown
from loadtest.report.request_plots import request_plots
from loadtest.report.server_plots import phases_plot, timeline_plot
from loadtest.report.tables import tables_of
from loadtest.results.figures import Totals, to_json
from loadtest.results.records import Record
from loadtest.results.run_folder import AnswerCheckResult, RunFolder, RunInfo
from loadtest.results.thresholds import NO_THRESHOLDS, Thresholds, Verdict, verdict_of
from loadtest.results.timeline import Timeline, timeline_of
from loadtest.results.totals import totals_of


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
    """Write the report of a run beside its records and return the verdict. It can be written again at any time.

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
