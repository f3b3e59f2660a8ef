"""The verdict on a run: exit code and reasons."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from loadtest.results.figures import StageTotals, Totals
from loadtest.results.records import Outcome


class ExitCode(IntEnum):
    """Exit codes of a load test."""

    FINE = 0
    COULD_NOT_RUN = 1
    MISSED = 2
    INVALID = 3
    INTERRUPTED = 4


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits for the exit code; None disables a limit."""

    max_p95_ms: float | None = None  # of the answered requests of every stage
    min_goodput: float | None = None  # requests per second, of the headline
    max_error_ratio: float | None = None  # share of the requests due in all stages' windows

    def __post_init__(self) -> None:
        for name in ("max_p95_ms", "min_goodput", "max_error_ratio"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"`{name}` must not be negative. Given: {value}")

    def or_else(self, others: "Thresholds") -> "Thresholds":
        """Return these thresholds, completed by others."""
        return Thresholds(
            others.max_p95_ms if self.max_p95_ms is None else self.max_p95_ms,
            others.min_goodput if self.min_goodput is None else self.min_goodput,
            others.max_error_ratio if self.max_error_ratio is None else self.max_error_ratio,
        )

    def described(self) -> str:
        """Return the limits in a few words; empty without limits."""
        parts = []
        if self.max_p95_ms is not None:
            parts.append(f"p95 of every stage at most {self.max_p95_ms:g} ms")
        if self.min_goodput is not None:
            parts.append(f"goodput at least {self.min_goodput:g} requests/s")
        if self.max_error_ratio is not None:
            parts.append(f"at most {self.max_error_ratio:.4g} of the requests fail")
        return ", ".join(parts)


NO_THRESHOLDS = Thresholds()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Exit code of a run and its reasons, the deciding one first."""

    exit_code: ExitCode
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Last line of a load test's output."""
        return f"exit {self.exit_code.value}: {'; '.join(self.reasons)}"


# A rejection is an answer, and impatient clients disconnect on purpose.
ERRORS = (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.UNFINISHED)


def error_ratio(totals: Totals) -> float:
    """Return the share of requests of all stages that failed, timed out or were never answered."""
    sent = sum(stage.all.sent for stage in totals.stages)
    errors = sum(_num_errors(stage) for stage in totals.stages)
    return errors / sent if sent else 0.0


def _num_errors(stage: StageTotals) -> int:
    return sum(stage.all.outcomes[outcome] for outcome in ERRORS)


def verdict_of(totals: Totals, thresholds: Thresholds = NO_THRESHOLDS) -> Verdict:
    """Return the verdict on a run.

    Different answers come first, because they do not depend on the generator. Then follow an interrupted run, an
    invalid run and the thresholds.
    """
    interrupted = list(interruption(totals))
    if not any(stage.all.outcomes[Outcome.ANSWERED] for stage in totals.stages):
        return Verdict(ExitCode.COULD_NOT_RUN, (_nothing_answered(totals), *interrupted))
    wrong = list(_wrong_answers(totals))
    invalid = list(invalid_reasons(totals))
    missed = list(_missed(totals, thresholds))
    if wrong:
        return Verdict(ExitCode.MISSED, (*wrong, *interrupted, *invalid, *missed))
    if interrupted:
        return Verdict(ExitCode.INTERRUPTED, (*interrupted, *invalid, *missed))
    if invalid:
        return Verdict(ExitCode.INVALID, (*invalid, *missed))
    if missed:
        return Verdict(ExitCode.MISSED, tuple(missed))
    return Verdict(ExitCode.FINE, (_fine(totals, thresholds),))


def _nothing_answered(totals: Totals) -> str:
    sent = sum(stage.all.sent for stage in totals.stages)
    if not sent:
        return "no request was due in any measured window"
    reasons = [reason for stage in totals.stages for reason in stage.all.reasons]
    return f"none of {sent} requests was answered" + (f" ({reasons[0]})" if reasons else "")


def _wrong_answers(totals: Totals) -> Iterator[str]:
    share = totals.headline.guard_share
    if share is not None and share < 1:
        checked = totals.headline.guard_checked
        wrong = checked - round(share * checked)
        yield f"{wrong} of {checked} answers under load differ from those of the idle server"
    if sentence := not_answered_again(totals):
        yield sentence


def not_answered_again(totals: Totals) -> str:
    """Return a sentence on answers that could not be compared; empty if all could."""
    unanswered = totals.headline.guard_unanswered
    if not unanswered:
        return ""
    num_unanswered = sum(unanswered.values())
    asked = totals.headline.guard_checked + num_unanswered
    return f"{num_unanswered} of {asked} requests were not answered again by the idle server ({next(iter(unanswered))})"


def interruption(totals: Totals) -> Iterator[str]:
    """Yield a sentence on the interruption of the run; nothing for a complete run."""
    if totals.headline.is_interrupted:
        missing = ", ".join(totals.headline.stages_not_run)
        yield "the run was interrupted" + (f" before {missing}" if missing else "")


def invalid_reasons(totals: Totals) -> Iterator[str]:
    """Yield a sentence for each invalid stage; nothing for a valid run."""
    for name in totals.headline.late_stages:
        stage = totals.stage(name)
        assert stage is not None
        lag = stage.lag_ms.p99 if stage.lag_ms is not None else 0.0
        yield f"invalid: the generator was late in stage {name} (p99 of its lag {lag:.1f} ms)"


def _missed(totals: Totals, thresholds: Thresholds) -> Iterator[str]:
    for stage in totals.stages:
        # A step of the search may exceed the server's capacity: the search ends there.
        if not stage.is_search_step and _num_errors(stage) == stage.all.sent > 0:
            yield f"all {stage.all.sent} requests of stage {stage.name} failed ({next(iter(stage.all.reasons), '-')})"
    if thresholds.max_p95_ms is not None:
        yield from _slow_stages(totals, thresholds.max_p95_ms)
    if thresholds.min_goodput is not None:
        goodput = totals.headline.goodput
        if goodput is None:
            yield f"no goodput to compare with {thresholds.min_goodput:g}: no valid open-loop stage"
        elif goodput < thresholds.min_goodput:
            yield f"goodput is {goodput:.2f} requests/s, below {thresholds.min_goodput:g}"
    if thresholds.max_error_ratio is not None and error_ratio(totals) > thresholds.max_error_ratio:
        yield f"{error_ratio(totals):.2%} of the requests failed, above {thresholds.max_error_ratio:.2%}"


def _slow_stages(totals: Totals, max_p95_ms: float) -> Iterator[str]:
    for stage in totals.stages:
        latency = stage.all.latency_ms
        if latency is not None and latency.p95 > max_p95_ms:
            yield f"p95 of stage {stage.name} is {latency.p95:.1f} ms, above {max_p95_ms:g}"
        elif latency is None and stage.all.sent:
            yield f"stage {stage.name} has no p95 to compare with {max_p95_ms:g} ms: no request was answered"


def _fine(totals: Totals, thresholds: Thresholds) -> str:
    parts = ["no threshold was given" if thresholds == NO_THRESHOLDS else "every threshold held"]
    if totals.headline.guard_share is not None:
        parts.append(f"all {totals.headline.guard_checked} compared answers equal those of the idle server")
    if any(not stage.is_closed_loop and stage.lag_ms is not None for stage in totals.stages):
        parts.append("requests left on time")
    return ", ".join(parts)
