"""The headline of a report: the run in a few lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadtest.report.tables import milliseconds, percent, rate
from loadtest.results.figures import StageTotals, Totals
from loadtest.results.run_folder import MetricsSample, RunInfo
from loadtest.results.thresholds import ExitCode, Thresholds, Verdict, interruption, not_answered_again
from loadtest.results.timeline import cached_share
from loadtest.results.totals import MAX_LAG_P99_MS, trials_of


class Severity(StrEnum):
    """Severity of a line."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of the headline with its explanation."""

    name: str
    value: str
    meaning: str
    severity: Severity = Severity.PLAIN


def headline_of(totals: Totals, verdict: Verdict) -> list[Line]:
    """Return the lines, the most important first."""
    return [
        *_interruption(totals),
        _goodput(totals),
        _knee(totals),
        *_beyond(totals),
        _validity(totals),
        _answer_check(totals),
        Line(
            "Exit code",
            str(verdict.exit_code.value),
            "; ".join(verdict.reasons),
            Severity.GOOD if verdict.exit_code is ExitCode.FINE else Severity.BAD,
        ),
    ]


def objective_sentence(totals: Totals) -> str:
    """Return a sentence on the objective."""
    objective = totals.objective
    return (
        f"Objective: {objective.milliseconds:g} ms for each begun {objective.max_source_tokens} source tokens of a "
        f"request, from the instant it was due, met by {percent(objective.share)} of the requests. Rejected and failed "
        "requests miss it. Requests whose client disconnected before the limit are left out."
    )


def facts_of(
    info: RunInfo, totals: Totals, samples: Sequence[MetricsSample], thresholds: Thresholds
) -> list[tuple[str, str]]:
    """Return the circumstances of the run as pairs of name and value."""
    facts = [
        ("scenario", f"{totals.scenario}, seed {totals.seed}"),
        ("server", totals.url + (f" ({_models(info)})" if _models(info) else "")),
        ("started", totals.started_at),
        ("machine", f"{info.machine.cpu}, {info.machine.cores} cores, {info.machine.system}"),
        (
            "generator",
            f"{info.generator.num_processes} process{'es' if info.generator.num_processes != 1 else ''}, nice "
            f"{info.generator.nice}, {percent(totals.headline.generator_cpu_share)} of the machine's processor time",
        ),
    ]
    if info.server.cpu_seconds is not None:
        facts.append(("server's processor time", f"{info.server.cpu_seconds:.1f} s"))
    before, after = info.server.resident_bytes_before, info.server.resident_bytes_after
    if before is not None and after is not None:
        facts.append(("server's memory", f"{before / 2**20:.0f} MiB before, {after / 2**20:.0f} MiB after"))
    if samples:
        shared = percent(cached_share(samples))
        facts.append(("sentences not decoded", f"{shared}: from the server's cache, or joined with one in flight"))
    if info.knee is not None:
        facts.append(("knee the rates refer to", f"{rate(info.knee)} requests/s"))
    facts.append(("thresholds", thresholds.described() or "none"))
    facts.append(("versions", ", ".join(f"{name} {number}" for name, number in info.versions.items())))
    return facts


def _models(info: RunInfo) -> str:
    models = (info.server.models or {}).get("models")
    if not isinstance(models, list):
        return ""
    names = [model.get("name") or model.get("id") for model in models if isinstance(model, dict)]
    return ", ".join(str(name) for name in names if name)


def _goodput(totals: Totals) -> Line:
    headline = totals.headline
    if headline.goodput is None:
        return Line("Goodput", "none", _why_none(totals))
    meaning = f"requests answered within the objective in the best stage, {headline.goodput_stage}"
    return Line("Goodput", f"{rate(headline.goodput)} requests/s", meaning)


def _knee(totals: Totals) -> Line:
    headline, share = totals.headline, percent(totals.objective.share)
    name = f"Highest load at which {share} meet the objective"
    stage = totals.stage(headline.knee_stage)
    if headline.knee_rate is None or stage is None:
        tried = [trial.rate for trial in trials_of(totals.stages)]
        why = f"not even at {rate(min(tried))} requests/s, the lowest tried" if tried else _why_none(totals)
        return Line(name, "none", why)
    meaning = (
        f"{percent(stage.all.share_within_objective)} in stage {stage.name}; {_next_rate(totals, headline.knee_rate)}"
    )
    return Line(name, f"{rate(headline.knee_rate)} requests/s", meaning)


def _next_rate(totals: Totals, knee_rate: float) -> str:
    above = [trial for trial in trials_of(totals.stages) if trial.rate > knee_rate]
    missed = [trial for trial in above if (trial.share or 0.0) < totals.objective.share]
    if not above:
        return "nothing higher was tried, so the knee may lie higher"
    if not missed:
        return "higher rates held in shorter stages only, and missed it elsewhere"
    nearest = min(missed, key=lambda trial: (trial.rate, -trial.num_requests))
    return f"{percent(nearest.share)} at {rate(nearest.rate)} requests/s, the next rate that missed it"


def _beyond(totals: Totals) -> Iterator[Line]:
    """Yield a line on the highest rate above the knee."""
    knee, best = totals.headline.knee_rate, totals.headline.goodput
    if knee is None or not best:
        return
    above = [s for s in totals.stages if s.has_one_rate and s.all.sent and s.rate is not None and s.rate > knee]
    if not above:
        return
    highest: StageTotals = max(above, key=lambda stage: stage.rate or 0.0)
    parts = [f"goodput {rate(highest.all.goodput)} requests/s in stage {highest.name}"]
    if highest.all.rejected_ms is not None:
        parts.append(f"rejections within {milliseconds(highest.all.rejected_ms.p99)} ms (p99)")
    yield Line(
        f"Goodput at {(highest.rate or 0.0) / knee:.1f} times that load",
        percent(highest.all.goodput / best),
        f"of the best goodput: {', '.join(parts)}",
    )


def _interruption(totals: Totals) -> Iterator[Line]:
    for sentence in interruption(totals):
        yield Line("Complete", "no", f"{sentence}; its last stage may be cut short", Severity.BAD)


def _validity(totals: Totals) -> Line:
    open_stages = [stage for stage in totals.stages if not stage.is_closed_loop]
    lags = [stage.lag_ms.p99 for stage in open_stages if stage.lag_ms is not None]
    if totals.stages and not open_stages:
        return Line("Validity", "closed loop only", "users set the rate; this is not the latency at a given load")
    if not lags:
        return Line("Validity", "unknown", "no request was due in a measured window")
    worst = max(lags)
    lag = f"generator at most {milliseconds(worst)} ms late (p99; {MAX_LAG_P99_MS:g} allowed)"
    if totals.headline.is_void:
        return Line("Validity", "INVALID", f"{lag}, in {', '.join(totals.headline.late_stages)}", Severity.BAD)
    return Line("Validity", "valid", lag, Severity.GOOD)


def _answer_check(totals: Totals) -> Line:
    share = totals.headline.guard_share
    if unanswered := not_answered_again(totals):
        compared = "nothing could be compared" if share is None else f"of {totals.headline.guard_checked} compared"
        return Line("Same answers as when idle", percent(share), f"{compared}; {unanswered}", Severity.BAD)
    if share is None:
        return Line("Same answers as when idle", "not checked", "no answer was compared with the idle server's")
    meaning = f"of {totals.headline.guard_checked} answers compared byte for byte with those of the idle server"
    return Line("Same answers as when idle", percent(share), meaning, Severity.GOOD if share == 1 else Severity.BAD)


def _why_none(totals: Totals) -> str:
    if not any(stage.all.sent for stage in totals.stages):
        return "no request was due in a measured window"
    if all(stage.is_closed_loop for stage in totals.stages if stage.all.sent):
        return "every stage is a closed loop"
    if all(stage.is_late or stage.is_closed_loop for stage in totals.stages if stage.all.sent):
        return "the generator was late in every stage"
    return "no stage has one rate"
