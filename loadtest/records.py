"""What was measured: one record a request, and the totals made from the records.

Locust's own statistics are not used: its Aggregated row mixes every event anybody fires, and its percentiles
are rounded. The totals here come from the exact times of the requests that belong to the measured window.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np


class Outcome(StrEnum):
    """How a request ended, from the client's side."""

    ANSWERED = "answered"
    REJECTED = "rejected"  # 429: the server said at once that it is full
    FAILED = "failed"  # any other status, a broken connection, or an answer that answers something else
    UNFINISHED = "unfinished"  # no answer before the load test gave up waiting


@dataclass(frozen=True, slots=True)
class Record:
    """One finished request. Times are seconds of one monotonic clock."""

    started: float
    finished: float
    outcome: Outcome
    uses_beam: bool
    num_sentences: int
    target_tokens: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of the time from sending to the whole answer, in seconds; each is a value that was observed."""

    num_requests: int
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a load test.

    Latencies and outcomes count the requests sent inside the window. Rates count the answers that arrived inside
    it, so neither the ramp before nor the drain after it can flatter them.
    """

    users: int
    window_seconds: float
    outcomes: dict[Outcome, int]
    reasons: dict[str, int]
    latency: dict[str, Latency]  # "all", "greedy", "beam"; a kind without answers is not there
    requests_per_second: float
    sentences_per_second: float
    target_tokens_per_second: float

    @property
    def exit_code(self) -> int:
        """0 when something was answered and nothing failed. A rejection is an answer of the server's, not a failure."""
        broken = self.outcomes[Outcome.FAILED] + self.outcomes[Outcome.UNFINISHED]
        return 0 if self.outcomes[Outcome.ANSWERED] and not broken else 1


@dataclass(slots=True)
class Recorder:
    """Collects records while a test runs. One thread (or one gevent hub) uses it.

    `opened` and `closed` bound the measured window: all users running, none told to stop yet.
    """

    opened: float | None = None
    closed: float | None = None
    records: list[Record] = field(default_factory=list)
    _in_flight: dict[int, tuple[float, bool]] = field(default_factory=dict)
    _num_started: int = 0

    def start(self, now: float, uses_beam: bool) -> int:
        """Notes that a request is being sent and returns a ticket for `finish`."""
        self._num_started += 1
        self._in_flight[self._num_started] = (now, uses_beam)
        return self._num_started

    def finish(
        self,
        ticket: int,
        now: float,
        outcome: Outcome,
        num_sentences: int,
        target_tokens: int = 0,
        reason: str = "",
    ) -> None:
        """Notes how the request of `ticket` ended. `reason` is a short sentence, counted by its text."""
        started, uses_beam = self._in_flight.pop(ticket)
        self.records.append(Record(started, now, outcome, uses_beam, num_sentences, target_tokens, reason))

    def summary(self, users: int) -> Summary:
        """The totals. Raises `ValueError` when there is no window: the users were never all running at once."""
        if self.opened is None or self.closed is None or self.closed <= self.opened:
            raise ValueError("nothing was measured: the test ended before all its users were running")
        opened, closed = self.opened, self.closed
        sent = [record for record in self.records if opened <= record.started < closed]
        arrived = [r for r in self.records if r.outcome is Outcome.ANSWERED and opened <= r.finished < closed]
        seconds = closed - opened
        outcomes = Counter(record.outcome for record in sent)
        outcomes[Outcome.UNFINISHED] += sum(opened <= started < closed for started, _ in self._in_flight.values())
        return Summary(
            users=users,
            window_seconds=seconds,
            outcomes={outcome: outcomes[outcome] for outcome in Outcome},
            reasons=dict(Counter(record.reason for record in sent if record.reason).most_common()),
            latency=_latency_by_kind([record for record in sent if record.outcome is Outcome.ANSWERED]),
            requests_per_second=len(arrived) / seconds,
            sentences_per_second=sum(record.num_sentences for record in arrived) / seconds,
            target_tokens_per_second=sum(record.target_tokens for record in arrived) / seconds,
        )


def _latency_by_kind(answered: list[Record]) -> dict[str, Latency]:
    kinds = {
        "all": answered,
        "greedy": [record for record in answered if not record.uses_beam],
        "beam": [record for record in answered if record.uses_beam],
    }
    return {kind: _latency(records) for kind, records in kinds.items() if records}


def _latency(records: list[Record]) -> Latency:
    seconds = np.array([record.finished - record.started for record in records])  # [num_requests]
    p50, p90, p95, p99 = np.percentile(seconds, [50, 90, 95, 99], method="inverted_cdf")
    return Latency(len(records), float(p50), float(p90), float(p95), float(p99), float(seconds.max()))
