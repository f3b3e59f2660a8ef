"""Totals of a run, computed from its folder."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from loadtest.results.figures import FORMAT_VERSION, Headline, LengthBucket, Sample, StageTotals, Totals
from loadtest.results.objective import Objective, objective_of
from loadtest.results.percentiles import Percentiles, encoded, histogram_of, percentiles_ms
from loadtest.results.records import Outcome, Record
from loadtest.results.run_folder import AnswerCheckResult, MetricsSample, RunFolder, RunInfo, StageInfo
from loadtest.results.timeline import occupancy_of

# In the order of a request.
SERVER_PHASES = ("tokenize", "queue", "encode", "decode")
REST = "rest"  # the client's waiting time outside the server's phases: network, HTTP, and a late generator

# Upper bounds of source tokens: words, clauses, sentences, paragraphs.
LENGTH_BOUNDS = (8, 16, 32, 64, 128, 256, 512)


def sample_of(due: Sequence[Record], arrived: Sequence[Record], window_seconds: float, objective: Objective) -> Sample:
    """Return the figures of the requests that were `due` in a window.

    `arrived` are the requests answered within the window, whenever they were due. Throughput counts those, so that
    neither warm-up nor drain increases it. All other figures count `due`, however late the answers arrived.
    """
    answered = [record for record in due if record.outcome is Outcome.ANSWERED and record.latency is not None]
    within = sum(objective.is_met_by(record) for record in due)
    counted = sum(objective.counts(record) for record in due)
    # Only of the answered: rejected and failed requests were not tokenized and miss their objective at any length.
    num_estimated = sum(record.source_tokens_estimated for record in answered)
    reports_tokens = any(record.target_tokens is not None for record in arrived)
    target_tokens = sum(record.target_tokens or 0 for record in arrived)
    return Sample(
        sent=len(due),
        outcomes={outcome: sum(record.outcome is outcome for record in due) for outcome in Outcome},
        reasons=dict(Counter(record.reason for record in due if record.reason).most_common()),
        throughput=_per_second(len(arrived), window_seconds),
        goodput=_per_second(within, window_seconds),
        within_objective=within,
        share_within_objective=within / counted if counted else None,
        sentences_per_second=_per_second(sum(record.num_sentences for record in arrived), window_seconds),
        target_tokens_per_second=_per_second(target_tokens, window_seconds) if reports_tokens else None,
        source_tokens_estimated=num_estimated / len(answered) if answered else 0.0,
        latency_ms=_latency_ms(answered),
        rejected_ms=_latency_ms([record for record in due if record.outcome is Outcome.REJECTED]),
        first_token_ms=percentiles_ms(r.first_event - r.scheduled for r in answered if r.first_event is not None),
        gap_ms=percentiles_ms(gap for record in answered for gap in record.event_gaps),
        phases_ms=_phases_ms(answered),
        by_length=tuple(_buckets(answered, objective)),
    )


def arrived_within(records: Sequence[Record], start: float, end: float) -> list[Record]:
    """Return the requests answered from `start` to before `end`."""
    return [
        record
        for record in records
        if record.outcome is Outcome.ANSWERED and record.finished is not None and start <= record.finished < end
    ]


def rest_ms(record: Record) -> float | None:
    """Return the milliseconds of an answered request outside the server's phases; None if it reports no phases.

    The longest phases of a request may belong to different sentences and add up to more than its latency; that counts
    as 0.
    """
    named = [record.phases_ms[name] for name in SERVER_PHASES if name in record.phases_ms]
    if not named or record.latency is None:
        return None
    return max(record.latency * 1000 - sum(named), 0.0)


def _phases_ms(answered: Sequence[Record]) -> dict[str, Percentiles]:
    durations = {
        name: [record.phases_ms[name] / 1000 for record in answered if name in record.phases_ms]
        for name in SERVER_PHASES
    }
    durations[REST] = [rest / 1000 for record in answered if (rest := rest_ms(record)) is not None]
    measured = {name: percentiles_ms(seconds) for name, seconds in durations.items()}
    return {name: percentiles for name, percentiles in measured.items() if percentiles is not None}


def _buckets(answered: Sequence[Record], objective: Objective) -> list[LengthBucket]:
    buckets = []
    fewest = 0
    for most in (*LENGTH_BOUNDS, None):
        inside = [
            record
            for record in answered
            if fewest <= record.source_tokens and (most is None or record.source_tokens <= most)
        ]
        latency = _latency_ms(inside)
        if latency is not None:
            share = sum(objective.is_met_by(record) for record in inside) / len(inside)
            buckets.append(LengthBucket(fewest, most, latency, share))
        fewest = (most or 0) + 1
    return buckets


def _latency_ms(records: Sequence[Record]) -> Percentiles | None:
    return percentiles_ms(record.latency for record in records if record.latency is not None)


def _per_second(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


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
