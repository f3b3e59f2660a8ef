"""The measurement in rounds over all servers, so that slow changes of the machine affect all of them equally."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from benchmarks.progress import log_progress
from benchmarks.servers.results import KneeFound, LoadFound, ServerFound
from benchmarks.servers.running import InterleavedRuns
from benchmarks.servers.server_kinds import ServerFailed, ServerKind
from benchmarks.servers.tuning import at_rate, search
from loadtest.cli.run import LoadTestFailed
from loadtest.results.figures import StageTotals
from loadtest.results.records import Record, RecordWriter
from loadtest.results.run_folder import GeneratorInfo, RunFolder, ServerInfo, StageInfo
from loadtest.results.totals import totals
from loadtest.workload.scenario import Scenario

FAR_BEYOND = 4.0  # times a server's own knee: higher loads are not offered, because their backlog takes minutes
SLOW_REQUESTS = 150  # per step of a search, for a meaningful share of 99 %; a step may last up to twice as long
CLOSE = 0.1  # rates that differ by less are merged


@dataclass(slots=True)
class ServerUnderTest:
    """A server of the comparison with its requests and results; `runs` are pairs of a round's name and a run."""

    kind: ServerKind
    requests: Scenario
    found: ServerFound
    runs: list[tuple[str, RunFolder]] = field(default_factory=list)

    @property
    def is_active(self) -> bool:
        """Whether the server is still measured."""
        return self.found.not_run is None


@dataclass(frozen=True, slots=True)
class Procedure:
    """Parameters of the measurement. The first fifth of every step and load is not counted."""

    folder: Path
    step_seconds: float = 15.0
    load_seconds: float = 25.0
    rounds: int = 3
    give_up: float = math.inf  # on time.monotonic()'s clock: no round starts that would end later, and no load after it


def run_rounds(interleaved: InterleavedRuns, servers: Sequence[ServerUnderTest], procedure: Procedure) -> int:
    """Measure all servers and return the number of complete rounds; the knees of the first are always searched."""
    rates: list[float] = []
    lasted = 0.0
    for number in range(1, procedure.rounds + 1):
        began = time.monotonic()
        if number > 1 and began + lasted > procedure.give_up:
            return number - 1
        for server in servers:
            with _excluded_on_failure(server) as one:
                if one.is_active:
                    _find_knee(interleaved, one, procedure, number)
        rates = rates or offered_rates([server.found for server in servers])
        for rate in rates:
            if time.monotonic() > procedure.give_up:
                log_progress("  time limit reached: no more loads")
                break
            for server in servers:
                with _excluded_on_failure(server) as one:
                    if one.is_active and is_worth_offering(one.found, rate):
                        _offer(interleaved, one, procedure, rate, number)
        lasted = time.monotonic() - began
    return procedure.rounds


def offered_rates(servers: Sequence[ServerFound]) -> list[float]:
    """Return the rates for all servers: each knee (half the capacity without one) and twice the highest."""
    knees = [knee for server in servers if (knee := knee_or_half(server)) is not None]
    wanted = sorted([*knees, 2 * max(knees)]) if knees else []
    kept: list[float] = []
    for rate in wanted:
        if not kept or rate > kept[-1] * (1 + CLOSE):
            kept.append(float(f"{rate:.3g}"))
    return kept


def knee_or_half(server: ServerFound) -> float | None:
    """Return the server's knee, or half its capacity without a knee."""
    return server.knee or (server.capacity / 2 if server.capacity else None)


def is_worth_offering(server: ServerFound, rate: float) -> bool:
    """Return whether the rate is at most `FAR_BEYOND` times the server's knee."""
    own = knee_or_half(server)
    return own is not None and rate <= FAR_BEYOND * own


@contextmanager
def _excluded_on_failure(server: ServerUnderTest) -> Iterator[ServerUnderTest]:
    """Exclude the server from the comparison if it fails inside the block."""
    try:
        yield server
    except (ServerFailed, LoadTestFailed) as failure:
        server.found.not_run = str(failure)
        log_progress(f"  {server.found.name} is excluded: {failure}")


def _find_knee(interleaved: InterleavedRuns, server: ServerUnderTest, procedure: Procedure, number: int) -> None:
    found = server.found
    assert found.capacity is not None
    known = found.knee
    # Start below the knee, so that earlier overload has no influence.
    start, factor, bisections = (0.4 * found.capacity, 1.5, 3) if known is None else (0.7 * known, 1.25, 2)
    seconds = min(max(procedure.step_seconds, SLOW_REQUESTS / start), 2 * procedure.step_seconds)
    scenario = search(server.requests, float(f"{start:.3g}"), factor, bisections, seconds)
    folder = procedure.folder / f"round-{number}" / f"{found.name}-knee"
    run = interleaved.measure(server.kind, found.settings, scenario, folder)
    server.runs.append((f"round {number}", run))
    run_totals = totals(run)
    at_knee = run_totals.stage(run_totals.headline.knee_stage)
    result = KneeFound(
        number,
        run_totals.headline.knee_rate,
        at_knee.all.goodput if at_knee else 0.0,
        run_totals.headline.goodput or 0.0,
        run_totals.headline.is_void,
    )
    found.knees.append(result)
    outcome = "no rate sustained" if result.knee is None else f"knee {result.knee:g}/s"
    late = ", LATE" if result.is_late else ""
    log_progress(f"  round {number}, {found.name}: {outcome}, best goodput {result.best_goodput:.1f}/s{late}")


def _offer(
    interleaved: InterleavedRuns, server: ServerUnderTest, procedure: Procedure, rate: float, number: int
) -> None:
    found, seconds = server.found, procedure.load_seconds
    scenario = at_rate(server.requests, f"{rate:g}/s for all (round {number})", rate, seconds, seconds / 5)
    folder = procedure.folder / f"round-{number}" / f"{found.name}-{rate:g}"
    try:
        run = interleaved.measure(server.kind, found.settings, scenario, folder)
    except LoadTestFailed as failure:  # the server may still sustain lower rates
        log_progress(f"  {rate:g}/s, {found.name}: {failure}")
        return
    server.runs.append((f"round {number}", run))
    load = load_found(run, totals(run).stages[0], rate, number)
    found.loads.append(load)
    late = ", LATE" if load.is_late else ""
    log_progress(f"  {rate:g}/s, {found.name}: goodput {load.goodput:.1f}/s, {load.share_in_time:.1%} in time{late}")


def load_found(run: RunFolder, stage: StageTotals, rate: float, number: int) -> LoadFound:
    """Return the figures of an offered load."""
    info, sample = run.info(), stage.all
    wall = info.generator.wall_seconds or 1.0
    server = info.server.cpu_seconds
    return LoadFound(
        round=number,
        rate=rate,
        goodput=sample.goodput,
        share_in_time=sample.share_within_objective or 0.0,
        p50_ms=sample.latency_ms.p50 if sample.latency_ms else None,
        p99_ms=sample.latency_ms.p99 if sample.latency_ms else None,
        rejected_p99_ms=sample.rejected_ms.p99 if sample.rejected_ms else None,
        rejected_share=sample.outcomes.get("rejected", 0) / max(sample.sent, 1),
        target_tokens_per_second=sample.target_tokens_per_second,
        server_cores=None if server is None else server / wall,
        generator_cores=info.generator.cpu_seconds / wall,
        is_late=stage.is_late,
    )


def merged(runs: Sequence[tuple[str, RunFolder]], folder: Path, label: str) -> RunFolder:
    """Return one run with all stages of at least one run, on the clock of the first.

    The name of each run precedes the names of its stages, which must then be unique. Raises `BadRunFolder`.
    """
    folder.mkdir(parents=True)
    together = RunFolder(folder)
    infos = [run.info() for _, run in runs]
    began = datetime.fromisoformat(infos[0].started_at)
    stages: list[StageInfo] = []
    with RecordWriter(together.records_file) as writer:
        for (name, run), info in zip(runs, infos, strict=True):
            later = (datetime.fromisoformat(info.started_at) - began).total_seconds()
            stages += [_later(replace(stage, name=f"{name}, {stage.name}"), later) for stage in info.stages]
            writer.write([_record_later(record, f"{name}, {record.stage}", later) for record in run.records()])
    assert len({stage.name for stage in stages}) == len(stages), "two stages with the same name"
    cpu_seconds = [info.server.cpu_seconds for info in infos]
    together.write_info(
        replace(
            infos[0],
            label=label,
            knee=None,
            stages=tuple(stages),
            generator=GeneratorInfo(
                cpu_seconds=sum(info.generator.cpu_seconds for info in infos),
                wall_seconds=sum(info.generator.wall_seconds for info in infos),
                num_processes=max(info.generator.num_processes for info in infos),
                nice=max(info.generator.nice for info in infos),
            ),
            server=ServerInfo(
                models=infos[0].server.models,
                cpu_seconds=None if None in cpu_seconds else sum(seconds or 0.0 for seconds in cpu_seconds),
                resident_bytes_before=infos[0].server.resident_bytes_before,
                resident_bytes_after=infos[-1].server.resident_bytes_after,
            ),
        )
    )
    return together


def _later(stage: StageInfo, seconds: float) -> StageInfo:
    return replace(
        stage,
        started=stage.started + seconds,
        warm_up_ended=stage.warm_up_ended + seconds,
        sending_ended=stage.sending_ended + seconds,
        drained=stage.drained + seconds,
    )


def _record_later(record: Record, stage: str, seconds: float) -> Record:
    return replace(
        record,
        stage=stage,
        scheduled=record.scheduled + seconds,
        sent=record.sent + seconds,
        first_event=None if record.first_event is None else record.first_event + seconds,
        finished=None if record.finished is None else record.finished + seconds,
    )
