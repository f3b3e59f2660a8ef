"""Tables of a comparison: the runs side by side, and every figure with its ratio."""

from loadtest.report.numbers import BETTER, NOTHING, SAME, WORSE, milliseconds, percent, rate
from loadtest.report.tables import Table
from loadtest.results.comparison import Change, Comparison

RULE = (
    "The first run is the base. Ratios are other / base, with their 99 % interval from resampled blocks of time. "
    f"{BETTER} better and {WORSE} worse mark ratios whose interval excludes 1 and which differ from 1 by more than 2 % "
    f"(shares: 0.5 %); {SAME} is within noise. Noise means variation within a run; variation between starts or days "
    "needs repeated runs. A ratio without an interval is based on too few requests."
)


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return the headline of each run, then all changes."""
    return [table for table in (_headlines(comparison), _changes(comparison)) if table.rows]


def marked_sentences(comparison: Comparison) -> list[str]:
    """Return the differences for a terminal, one per line; empty without differences."""
    return [
        f"{run.name}: {change.figure}{f' of stage {change.stage}' if change.stage else ''} "
        f"{value_of(change, change.other)} {change.unit.replace('share', '')}".rstrip()
        + f" instead of {value_of(change, change.base)}, {ratio_of(change)}"
        for run in comparison.runs[1:]
        for change in run.changes
        if change.is_different
    ]


def value_of(change: Change, value: float | None) -> str:
    """Return a figure as text."""
    return {"/s": rate, "ms": milliseconds, "share": percent}[change.unit](value)


def ratio_of(change: Change) -> str:
    """Return the ratio, its interval, and the mark."""
    if change.ratio is None:
        return NOTHING if change.is_better is None else BETTER if change.is_better else WORSE
    if change.low is None:
        return f"× {change.ratio:.2f}"
    high = "∞" if change.high is None else f"{change.high:.2f}"
    mark = SAME if change.is_better is None else BETTER if change.is_better else WORSE
    return f"× {change.ratio:.2f} ({change.low:.2f} to {high}) {mark}"


def _headlines(comparison: Comparison) -> Table:
    rows = []
    for run in comparison.runs:
        headline = run.totals.headline
        changes = {change.figure: change for change in run.changes if change.stage is None}
        ratios = [ratio_of(change) for change in changes.values()] or ["base"] * 2
        rows.append(
            (
                run.name,
                rate(headline.goodput),
                ratios[0],
                rate(headline.knee_rate),
                ratios[1] if len(ratios) > 1 else NOTHING,
                "INVALID" if headline.is_void else "valid",
                percent(headline.guard_share),
                percent(headline.generator_cpu_share),
            )
        )
    header = (
        *("run", "goodput /s", "ratio", "highest load that meets the objective /s", "ratio"),
        *("validity", "same answers as when idle", "generator's share of the machine"),
    )
    return Table("The runs", RULE, header, tuple(rows))


def _changes(comparison: Comparison) -> Table:
    base, *others = comparison.runs
    by_figure = [{(change.stage, change.figure): change for change in run.changes} for run in others]
    keys = list(dict.fromkeys(key for changes in by_figure for key in changes if key[0] is not None))
    rows = []
    for stage, figure in keys:
        changes = [of_run.get((stage, figure)) for of_run in by_figure]
        known = next(change for change in changes if change is not None)
        cells = [
            text
            for change in changes
            for text in ((value_of(change, change.other), ratio_of(change)) if change else (NOTHING, NOTHING))
        ]
        unit = "" if known.unit == "share" else f" {known.unit}"
        rows.append((stage or "", f"{figure}{unit}", value_of(known, known.base), *cells))
    header = ("stage", "figure", base.name, *(name for run in others for name in (run.name, "ratio")))
    note = "Stages with the same name. Warnings above list different loads."
    return Table("Figure by figure", note, header, tuple(rows))
