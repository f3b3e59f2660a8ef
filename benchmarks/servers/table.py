"""A comparison as Markdown."""

from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.servers.interleaved_runs import describe
from benchmarks.servers.results import Comparison, LoadFound, Ratio, ServerFound, goodput_ratio, knee_ratio

_NOTHING = "-"

Cell = Callable[[Sequence[LoadFound]], str]  # of at least one load


def render(comparison: Comparison) -> str:
    """Return all tables with their explanations."""
    first = comparison.servers[0]
    machine = comparison.machine
    lines = [
        f"# {first.name} beside {', '.join(server.name for server in comparison.servers[1:]) or 'no other server'}",
        "",
        f"{comparison.date}, {machine.cpu}, {machine.cores} cores that server and load generator share; scenario "
        f"`{comparison.scenario}`, seed {comparison.seed}. In time: {comparison.objective}.",
        "",
        *_table(
            ("server", "knee, /s", f"{first.name} / it", "best goodput, /s", f"{first.name} / it", "settings"),
            [_summary(first, server) for server in comparison.servers],
        ),
        "",
        "Knee: the highest sustained rate of requests, the median of the rounds. Best goodput: requests per second "
        "answered in time, at the best rate of each round. Ratios are within a round: median (minimum - maximum).",
        "",
        "## The same loads for all servers",
        "",
        "Goodput, requests per second (share of all requests in time; share rejected).",
        "",
        *_by_rate(comparison, _goodput),
        "",
        "Latency of answered requests from the instant they were due, ms: p50 / p99; of rejections: p99.",
        "",
        *_by_rate(comparison, _latency),
        "",
        "Cores in use: server + load generator, which shares the cores with every server. Target tokens per "
        "second show which server generates more per answer.",
        "",
        *_by_rate(comparison, _cores),
        "",
        *_agreement(comparison.servers),
        *(f"* {note}" for note in _notes(comparison)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _summary(first: ServerFound, server: ServerFound) -> list[str]:
    best = [goodput for each in server.knees if (goodput := server.goodput_of(each.round)) is not None]
    is_first = server is first
    return [
        server.name,
        _spread([each.knee or 0.0 for each in server.knees]) + (" (!)" if _is_late(server) else ""),
        "" if is_first else _ratio(knee_ratio(first, server)),
        _spread(best),
        "" if is_first else _ratio(goodput_ratio(first, server)),
        server.not_run or describe(server.settings),
    ]


def _by_rate(comparison: Comparison, cell: Cell) -> list[str]:
    rows = [
        [f"{rate:g}/s", *(_cell(server.loads_at(rate), cell) for server in comparison.servers)]
        for rate in comparison.rates
    ]
    return _table(("offered", *(server.name for server in comparison.servers)), rows)


def _cell(loads: Sequence[LoadFound], cell: Cell) -> str:
    if not loads:
        return _NOTHING
    late = " (!)" if any(load.is_late for load in loads) else ""
    return cell(loads) + late


def _goodput(loads: Sequence[LoadFound]) -> str:
    in_time, rejected = _mean([load.share_in_time for load in loads]), _mean([load.rejected_share for load in loads])
    refused = f"; {rejected:.0%}" if rejected else ""
    return f"{_mean([load.goodput for load in loads]):.1f} ({in_time:.1%}{refused})"


def _latency(loads: Sequence[LoadFound]) -> str:
    p50, p99 = (_worst([load.p50_ms for load in loads]), _worst([load.p99_ms for load in loads]))
    rejected = _worst([load.rejected_p99_ms for load in loads])
    return f"{p50} / {p99}" + ("" if rejected == _NOTHING else f"; {rejected}")


def _cores(loads: Sequence[LoadFound]) -> str:
    known = [load.server_cores for load in loads if load.server_cores is not None]
    tokens = [load.target_tokens_per_second for load in loads if load.target_tokens_per_second is not None]
    server = f"{_mean(known):.2f}" if known else "?"
    tokens_per_second = f"; {_mean(tokens):.0f} tokens/s" if tokens else ""
    return f"{server} + {_mean([load.generator_cores for load in loads]):.2f}{tokens_per_second}"


def _agreement(servers: Sequence[ServerFound]) -> list[str]:
    sizes = sorted({each.beam_size for server in servers for each in server.agreements})
    if not sizes:
        return []
    rows = []
    for server in servers:
        by_size = {each.beam_size: each for each in server.agreements}
        shown = (
            f"{found.share:.1%}, {found.characters / max(found.reference_characters, 1):.2f}"
            if (found := by_size.get(size))
            else _NOTHING
            for size in sizes
        )
        rows.append([server.name, *shown])
    texts = next(each.texts for server in servers for each in server.agreements)
    return [
        "## Answers",
        "",
        f"{texts} texts: the share whose answers equal those of Hugging Face in float32, and the relative length of "
        "the answers (1.00: equal).",
        "",
        *_table(("server", *(f"beam {size}" if size > 1 else "greedy" for size in sizes)), rows),
        "",
    ]


def _is_late(server: ServerFound) -> bool:
    return any(each.is_late for each in server.knees)


def _notes(comparison: Comparison) -> list[str]:
    late = any(_is_late(server) or any(load.is_late for load in server.loads) for server in comparison.servers)
    marked = ["(!): the generator was late, so the result is invalid; measure again."] if late else []
    return [*marked, *comparison.notes]


def _spread(values: Sequence[float]) -> str:
    if not values:
        return _NOTHING
    if not any(values):
        return "none"
    return f"{median(values):.3g}" + (f" ({min(values):.3g} - {max(values):.3g})" if len(values) > 1 else "")


def _ratio(found: Ratio | None) -> str:
    return _NOTHING if found is None else f"{found.median:.2f} ({found.least:.2f} - {found.most:.2f})"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _worst(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{max(known):.0f}" if known else _NOTHING


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
