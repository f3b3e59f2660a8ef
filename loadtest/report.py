"""A summary as text for a terminal, and as JSON for a program."""

import json
from dataclasses import asdict

from loadtest.records import Latency, Outcome, Summary

_CLOSED_LOOP = (
    "Closed loop: a user sends its next request when it has the answer to its last one, so a slow server is asked\n"
    "less often. Compare runs of equal users with each other; this is not the latency at a given arrival rate."
)


def render(summary: Summary) -> str:
    """The report of a test, a dozen lines."""
    lines = [
        f"{summary.users} users, {summary.window_seconds:.1f} s measured",
        "",
        f"{'latency, ms':<12}{'requests':>10}{'p50':>10}{'p90':>10}{'p95':>10}{'p99':>10}{'max':>10}",
    ]
    for kind, latency in summary.latency.items():
        values = (latency.p50, latency.p90, latency.p95, latency.p99, latency.max)
        lines.append(f"{kind:<12}{latency.num_requests:>10}" + "".join(f"{value * 1000:>10.1f}" for value in values))
    lines += [
        "",
        f"{summary.sentences_per_second:.1f} sentences/s, {summary.requests_per_second:.1f} requests/s, "
        f"{summary.target_tokens_per_second:.0f} target tokens/s",
        ", ".join(f"{count} {outcome}" for outcome, count in summary.outcomes.items()),
        *(f"  {count} x {reason}" for reason, count in summary.reasons.items()),
        "",
        _CLOSED_LOOP,
    ]
    return "\n".join(lines)


def to_json(summary: Summary) -> str:
    """All fields of a summary; latencies in seconds."""
    return json.dumps(asdict(summary), indent=2) + "\n"


def from_json(text: str) -> Summary:
    """The summary that `to_json` wrote. Raises `KeyError`, `TypeError` or `ValueError` for any other text."""
    fields = json.loads(text)
    return Summary(
        users=fields["users"],
        window_seconds=fields["window_seconds"],
        outcomes={Outcome(name): count for name, count in fields["outcomes"].items()},
        reasons=fields["reasons"],
        latency={kind: Latency(**values) for kind, values in fields["latency"].items()},
        requests_per_second=fields["requests_per_second"],
        sentences_per_second=fields["sentences_per_second"],
        target_tokens_per_second=fields["target_tokens_per_second"],
    )
