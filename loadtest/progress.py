"""One line on a stage as soon as it is over. The figures that count are made later, from the files."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from loadtest.objective import Objective
from loadtest.records import Outcome, Record
from loadtest.run_folder import StageInfo


def share_within(records: Sequence[Record], objective: Objective) -> float | None:
    """The share of the requests that were answered within the objective, of those that say anything of it."""
    counted = sum(objective.counts(record) for record in records)
    return sum(objective.is_met_by(record) for record in records) / counted if counted else None


def progress_line(stage: StageInfo, measured: Sequence[Record], objective: Objective) -> str:
    """What was sent within the measured window, what came of it, and how late the generator was."""
    outcomes = Counter(record.outcome for record in measured)
    counts = ", ".join(f"{outcomes[outcome]} {outcome.replace('_', ' ')}" for outcome in Outcome if outcomes[outcome])
    parts = [f"{stage.name}: {counts or 'nothing was sent'} in {stage.window_seconds:.0f} s"]
    latencies = [r.latency * 1000 for r in measured if r.outcome is Outcome.ANSWERED and r.latency is not None]
    if latencies:
        p50, p95, p99 = np.percentile(latencies, (50, 95, 99))
        parts.append(f"p50 {p50:.0f}, p95 {p95:.0f}, p99 {p99:.0f} ms")
    share = share_within(measured, objective)
    if share is not None:
        parts.append(f"{share:.1%} in time")
    if measured and stage.users is None:
        parts.append(f"lag p99 {np.percentile([record.lag * 1000 for record in measured], 99):.1f} ms")
    elif stage.users is not None:
        parts.append(f"closed loop of {stage.users} users")
    return "; ".join(parts)
