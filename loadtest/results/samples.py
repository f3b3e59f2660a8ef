"""Figures of a set of requests, computed from their records."""

from collections import Counter
from collections.abc import Sequence

from loadtest.results.figures import LengthBucket, Sample
from loadtest.results.objective import Objective
from loadtest.results.percentiles import Percentiles, percentiles_ms
from loadtest.results.records import Outcome, Record

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
