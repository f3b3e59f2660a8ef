"""A comparison as Markdown."""

from collections.abc import Iterator
from statistics import median

from benchmarks.engines.results import DISTURBED, Comparison, Measurement, WorkloadResult, ratio

OURS = "Kvasir "
MEGABYTE = 1e6


def render(comparison: Comparison) -> str:
    """Return the ratios, which are the result, then one table per workload and the circumstances."""
    return "\n".join([*_ratios(comparison), *_workloads(comparison), *_circumstances(comparison)]) + "\n"


def _ratios(comparison: Comparison) -> Iterator[str]:
    for ours in _engines(comparison):
        if not ours.startswith(OURS):
            continue
        others = [name for name in _engines(comparison) if name != ours]
        if not others:
            continue
        yield f"## {ours}: speed relative to other engines"
        yield ""
        yield "Ratio of output tokens per second within a repetition: median (minimum - maximum)."
        yield f"(!) other processes took more than {DISTURBED:.0%} of the processors: unreliable, measure again."
        yield ""
        yield f"| workload | {' | '.join(others)} |"
        yield f"|---|{'---|' * len(others)}"
        for result in comparison.workloads:
            yield f"| {result.workload} | {' | '.join(_cell(result, ours, other) for other in others)} |"
        yield ""


def _cell(result: WorkloadResult, ours: str, theirs: str) -> str:
    measured, other = result.measurement(ours), result.measurement(theirs)
    if not measured or not other:
        return "not run"
    mark = " (!)" if measured.is_disturbed or other.is_disturbed else ""
    return f"{ratio(measured, other)}{mark}"


def _engines(comparison: Comparison) -> list[str]:
    """Return the names of all engines in their order."""
    names = [measured.engine for result in comparison.workloads for measured in result.measurements]
    return list(dict.fromkeys(names))


def _workloads(comparison: Comparison) -> Iterator[str]:
    yield "## The measurements"
    yield ""
    yield "Absolute numbers depend on the machine and its other load: compare ratios."
    for result in comparison.workloads:
        yield ""
        yield f"### {result.workload} ({result.num_sentences} sentences)"
        yield ""
        yield (
            "| engine | best setting | output tokens/s | minimum - maximum | repetitions | sentences/s "
            "| BLEU | chrF | peak memory, MB | start to ready, s | used by others |"
        )
        yield "|---|---|---|---|---|---|---|---|---|---|---|"
        yield from (_row(result, measured) for measured in result.measurements)
    yield ""


def _row(result: WorkloadResult, measured: Measurement) -> str:
    if measured.not_run is not None:
        reason = measured.not_run.replace("|", "\\|")
        return f"| {measured.engine} | not run: {reason} | | | | | | | | | |"
    speeds = measured.tokens_per_second
    cells = [
        measured.engine,
        measured.setting,
        f"{median(speeds):.0f}",
        f"{min(speeds):.0f} - {max(speeds):.0f}",
        f"{len(speeds)}",
        f"{result.num_sentences / median(measured.seconds):.1f}",
        "-" if measured.bleu is None else f"{measured.bleu:.1f}",
        "-" if measured.chrf is None else f"{measured.chrf:.1f}",
        f"{measured.peak_bytes / MEGABYTE:.0f}",
        f"{measured.start_seconds:.1f}",
        f"{max(measured.disturbance, default=0.0):.0%}",
    ]
    return f"| {' | '.join(cells)} |"


def _circumstances(comparison: Comparison) -> Iterator[str]:
    machine = comparison.machine
    yield "## Circumstances"
    yield ""
    yield f"- {machine.cpu}, {machine.usable_cpus} usable processors, {machine.system} {machine.architecture}"
    yield f"- {machine.date}; load average before the start {machine.load_before}"
    versions: dict[str, str] = {}
    for result in comparison.workloads:
        for measured in result.measurements:
            if measured.versions:
                packages = ", ".join(f"{package} {number}" for package, number in measured.versions.items())
                versions[measured.engine.split(" ")[0]] = packages
    yield from (f"- {engine}: {packages}" for engine, packages in versions.items())
    yield from (f"- {signature}" for signature in comparison.quality_signatures)
    yield f"- options: {', '.join(f'{name} {setting}' for name, setting in comparison.options.items())}"
