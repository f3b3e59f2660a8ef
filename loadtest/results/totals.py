"""Totals of a run, computed from its folder."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from loadtest.results.figures import FORMAT_VERSION, Headline, StageTotals, Totals
from loadtest.results.objective import Objective, objective_of
from loadtest.results.occupancy import occupancy_of
from loadtest.results.percentiles import encoded, histogram_of, percentiles_ms
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import AnswerCheckResult, MetricsSample, RunFolder, RunInfo, StageInfo
from loadtest.results.samples import arrived_within, sample_of

# A generator later than this, at p99, measures itself instead of the server.
MAX_LAG_P99_MS = 10.0


def totals(run: RunFolder) -> Totals:
    """Return all figures of the run in a folder. Raises `BadRunFolder` or `BadRecord` for an invalid folder."""
    return totals_of(run.info(), run.records(), run.metrics(), run.answer_check())


def totals_of(
    info: RunInfo, records: Iterable[Record], metrics: Sequence[MetricsSample], answer_check: AnswerCheckResult | None
) -> Totals:
    """Return all figures of a run from the content of its folder."""
    objective = objective_of(info.scenario)
    by_stage = records_by_stage(records)
    stages = tuple(_stage_totals(stage, by_stage.get(stage.name, []), metrics, objective) for stage in info.stages)
    return Totals(
        format_version=FORMAT_VERSION,
        label=info.label,
        scenario=str(info.scenario.get("name", "")),
        seed=info.seed,
        url=info.url,
        started_at=info.started_at,
        objective=objective,
        headline=_headline(stages, info, answer_check, objective),
        stages=stages,
    )


def records_by_stage(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Return the records of each stage by name."""
    by_stage: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_stage[record.stage].append(record)
    return by_stage


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of one stage with one rate."""

    rate: float
    share: float | None  # within the objective
    num_requests: int
    kinds: frozenset[str]

    def refutes(self, other: "Trial") -> bool:
        """Return whether a miss in this stage outweighs another that held: no higher rate, no fewer requests.

        A short stage sometimes holds at almost any rate. Stages of different kinds of request are not comparable.
        """
        return self.rate <= other.rate and self.num_requests >= other.num_requests and self.kinds == other.kinds


def trials_of(stages: Iterable[StageTotals]) -> list[Trial]:
    """Return the results of the stages with one rate."""
    return [
        Trial(stage.rate, stage.all.share_within_objective, stage.all.sent, frozenset(stage.kinds))
        for stage in stages
        if stage.has_one_rate and stage.rate is not None and stage.all.sent
    ]


def knee(trials: Sequence[Trial], needed: float) -> float | None:
    """Return the highest rate at which at least the `needed` share met the objective and that no other stage refutes.

    Nothing is interpolated: the knee is a rate that was tried. None if no rate holds.
    """
    missed = [trial for trial in trials if trial.share is None or trial.share < needed]
    held = [trial for trial in trials if trial.share is not None and trial.share >= needed]
    return max((trial.rate for trial in held if not any(miss.refutes(trial) for miss in missed)), default=None)


def _stage_totals(
    stage: StageInfo, records: Sequence[Record], metrics: Sequence[MetricsSample], objective: Objective
) -> StageTotals:
    start, end, seconds = stage.warm_up_ended, stage.sending_ended, max(stage.window_seconds, 0.0)
    due = [record for record in records if stage.measures(record)]
    arrived = arrived_within(records, start, end)
    is_closed_loop = stage.rate is None
    lag = percentiles_ms(record.lag for record in due)
    answered = np.array([r.latency for r in due if r.outcome is Outcome.ANSWERED and r.latency is not None])
    return StageTotals(
        name=stage.name,
        is_closed_loop=is_closed_loop,
        is_search_step=stage.is_search_step,
        rate=stage.rate,
        ramp_to=stage.ramp_to,
        users=stage.users,
        window_seconds=seconds,
        offered_rate=len(due) / seconds if seconds else 0.0,
        lag_ms=lag,
        is_late=not is_closed_loop and lag is not None and lag.p99 > MAX_LAG_P99_MS,
        all=sample_of(due, arrived, seconds, objective),
        kinds={
            kind: sample_of(
                [record for record in due if record.kind == kind],
                [record for record in arrived if record.kind == kind],
                seconds,
                objective,
            )
            for kind in sorted({record.kind for record in due})
        },
        occupancy=occupancy_of(metrics, start, end),
        histogram=encoded(histogram_of(answered)) if answered.size else None,
    )


def _headline(
    stages: Sequence[StageTotals], info: RunInfo, answer_check: AnswerCheckResult | None, objective: Objective
) -> Headline:
    valid = [stage for stage in stages if not stage.is_closed_loop and not stage.is_late and stage.all.sent]
    best = max(valid, key=lambda stage: stage.all.goodput, default=None)
    knee_rate = knee(trials_of(stages), objective.share)
    late = tuple(stage.name for stage in stages if stage.is_late)
    return Headline(
        goodput=None if best is None else best.all.goodput,
        goodput_stage=None if best is None else best.name,
        knee_rate=knee_rate,
        knee_stage=_longest_of(knee_rate, stages),
        is_void=bool(late),
        late_stages=late,
        generator_cpu_share=info.generator.share_of(info.machine),
        guard_share=answer_check.share if answer_check is not None and answer_check.checked else None,
        guard_checked=answer_check.checked if answer_check is not None else 0,
        guard_unanswered=answer_check.unanswered if answer_check is not None else {},
        is_interrupted=info.interrupted,
        stages_not_run=info.stages_not_run if info.interrupted else (),
    )


def _longest_of(rate: float | None, stages: Sequence[StageTotals]) -> str | None:
    """Return the stage with the most requests at this rate."""
    of_rate = [stage for stage in stages if rate is not None and stage.has_one_rate and stage.rate == rate]
    longest = max(of_rate, key=lambda stage: stage.all.sent, default=None)
    return None if longest is None else longest.name
