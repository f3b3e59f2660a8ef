"""Progress line of a completed stage. The figures of reports are computed later, from the files."""

from collections.abc import Sequence

from loadtest.results.objective import Objective
from loadtest.results.percentiles import percentiles_ms
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import StageInfo


def share_within(records: Sequence[Record], objective: Objective) -> float | None:
    """Return the share of requests answered within the objective, of those that count for it."""
    counted = sum(objective.counts(record) for record in records)
    return sum(objective.is_met_by(record) for record in records) / counted if counted else None


def progress_line(stage: StageInfo, measured: Sequence[Record], objective: Objective) -> str:
    """Return one line on the requests of the measured window."""
    answered = [r.latency for r in measured if r.outcome is Outcome.ANSWERED and r.latency is not None]
    parts = [f"{stage.name}: {len(answered)} of {len(measured)} requests answered"]
    latency = percentiles_ms(answered)
    if latency is not None:
        parts.append(f"p95 {latency.p95:.0f} ms")
    share = share_within(measured, objective)
    if share is not None:
        parts.append(f"{share:.1%} in time")
    return ", ".join(parts)
