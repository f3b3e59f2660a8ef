"""The coordinator of a run: assigns stages to the workers, collects their records, writes the run folder."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gevent.queue import Queue
from locust.env import Environment
from pydantic import JsonValue

from loadtest.coordination.answer_check import AnswerSample, check_answers
from loadtest.coordination.knee_search import KneeSearch
from loadtest.coordination.machine import ProcessUse, machine_info, process_use, versions
from loadtest.coordination.messages import StageAssignment
from loadtest.coordination.progress import progress_line, share_within
from loadtest.coordination.server_metrics import MetricsPoller, served_models
from loadtest.coordination.worker_group import CoordinationFailed, WorkerGroup
from loadtest.results.clock import RunClock, check_clocks, known_within
from loadtest.results.objective import Objective, objective_of
from loadtest.results.records import Record, RecordWriter, record_from_json
from loadtest.results.run_folder import GeneratorInfo, RunFolder, RunInfo, ServerInfo, StageInfo
from loadtest.results.thresholds import Thresholds
from loadtest.sending.addresses import address_of
from loadtest.sending.connections import NO_CONNECTION
from loadtest.workload.scenario import Scenario, Stage

_HEAD_START_SECONDS = 0.2  # from the start message to the first request
_DISTRIBUTED_HEAD_START_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """The scenario to run, its options, and the output folder."""

    scenario: Scenario
    url: str
    seed: int
    folder: Path
    label: str
    knee: float | None
    guard_requests: int
    server_pid: int | None
    thresholds: Thresholds


@dataclass(slots=True)
class _Progress:
    """Stages and generator usage of the run so far."""

    stages: list[StageInfo] = field(default_factory=list)
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    nice: int = 0


class Coordinator:
    """One run of a scenario. Call `run` in a greenlet; `stop` ends it early and keeps the measurements."""

    def __init__(self, environment: Environment, plan: Plan, incoming: Queue, log: Callable[[str], None]) -> None:
        """Take the workers' messages from `incoming`, as pairs of kind and content."""
        assert environment.runner is not None
        self._plan = plan
        self._log = log
        self._stopped = False
        self._is_sending = False
        self._run = RunFolder(plan.folder)
        self._progress = _Progress()
        self._sample = AnswerSample(plan.guard_requests, plan.seed)
        self._started_at = time.time()
        self._clock = RunClock(time.perf_counter())
        self._workers = WorkerGroup(environment.runner, incoming, self._clock)
        self._objective: Objective = objective_of(plan.scenario.model_dump(mode="json"))

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def stop(self) -> None:
        """Stop sending. `run` ends after the answers in flight."""
        self._stopped = True
        if self._is_sending:
            self._workers.stop()

    def run(self) -> RunFolder:
        """Search for the knee if necessary, send the stages, and check the answers.

        Raises `CoordinationFailed`, `ValueError` or `OSError`.
        """
        plan = self._plan
        address = address_of(plan.url)
        self._workers.assemble()
        _make_folder(plan.folder)
        models = served_models(address)
        before = process_use(plan.server_pid) if plan.server_pid else None
        self._run.records_file.touch()
        poller = MetricsPoller(address, self._run.metrics_file, self._clock)
        poller.start()
        scenario, knee = plan.scenario, plan.knee
        is_complete = False
        try:
            if scenario.needs_search and knee is None:
                knee = self._search()
            if scenario.needs_knee and not self._stopped:
                if knee is None:
                    raise CoordinationFailed("no rate met the objective, so stages in shares of the knee have no rate")
                scenario = scenario.with_rates(knee)
            for stage in scenario.stages:
                if not self._stopped:
                    self._send_stage(stage)
            is_complete = not self._stopped
        finally:
            poller.stop()
            self._write_info(scenario, knee, models, before, is_complete)
        if self._sample.population and plan.guard_requests and not self._stopped:
            self._log(f"checking {len(self._sample.answers())} of {self._sample.population} answers on the idle server")
            self._run.write_answer_check(check_answers(self._sample, plan.scenario, plan.seed, address))
        return self._run

    def _write_info(
        self,
        scenario: Scenario,
        knee: float | None,
        models: dict[str, JsonValue] | None,
        before: ProcessUse | None,
        is_complete: bool,
    ) -> None:
        plan, progress = self._plan, self._progress
        after = process_use(plan.server_pid) if plan.server_pid else None
        self._run.write_info(
            RunInfo(
                scenario=scenario.model_dump(mode="json"),
                seed=plan.seed,
                url=plan.url,
                label=plan.label,
                started_at=datetime.fromtimestamp(self._started_at, UTC).isoformat(timespec="seconds"),
                versions=versions(),
                machine=machine_info(),
                generator=GeneratorInfo(
                    cpu_seconds=round(progress.cpu_seconds, 3),
                    wall_seconds=round(progress.wall_seconds, 3),
                    num_processes=len(self._workers) + self._workers.is_distributed,
                    nice=progress.nice,
                ),
                server=ServerInfo(
                    models=models,
                    cpu_seconds=round(after.cpu_seconds - before.cpu_seconds, 3) if before and after else None,
                    resident_bytes_before=before.resident_bytes if before else None,
                    resident_bytes_after=after.resident_bytes if after else None,
                ),
                knee=knee,
                stages=tuple(progress.stages),
                thresholds=plan.thresholds,
                interrupted=not is_complete,
            )
        )

    def _search(self) -> float | None:
        assert self._plan.scenario.search is not None
        settings = self._plan.scenario.search
        search = KneeSearch(settings)
        while (rate := search.next_rate()) is not None and not self._stopped:
            name = f"search {len(self._progress.stages) + 1}: {rate:g}/s"
            measured = self._send_stage(settings.stage(name, rate), is_search_step=True)
            if not self._stopped:  # an interrupted step has no result
                self._check_reached(measured)
                share = share_within(measured, self._objective)
                search.record(rate, share is not None and share >= self._objective.share)
        return search.knee

    def _check_reached(self, measured: Sequence[Record]) -> None:
        """Raise `CoordinationFailed` if no request had a connection: no lower rate would have one."""
        if measured and all(record.reason.startswith(NO_CONNECTION) for record in measured):
            reason = measured[0].reason
            raise CoordinationFailed(f"{self._plan.url} is unreachable: all {len(measured)} requests failed, {reason}")

    def _send_stage(self, stage: Stage, is_search_step: bool = False) -> list[Record]:
        """Run a stage on all workers and return the records of its measured window."""
        workers = self._workers
        assignment = StageAssignment(
            scenario=self._plan.scenario.model_dump_json(),
            stage=stage.model_dump_json(),
            url=self._plan.url,
            seed=self._plan.seed,
            worker=0,
            num_workers=len(workers),
            sample_size=self._plan.guard_requests,
        )
        workers.prepare(assignment)
        clocks = workers.read_clocks()
        if not self._progress.stages:
            check_clocks(clocks)
        started = self._clock() + (_DISTRIBUTED_HEAD_START_SECONDS if workers.is_distributed else _HEAD_START_SECONDS)
        own_cpu = os.times()
        workers.go(started, clocks)
        self._is_sending = True
        if self._stopped:  # set while no worker was sending
            workers.stop()
        records: list[Record] = []
        with RecordWriter(self._run.records_file) as writer:

            def keep(lines: list[str]) -> None:
                batch = [record_from_json(line) for line in lines]
                writer.write(batch)
                records.extend(batch)

            done = workers.until_done(keep)
        self._is_sending = False
        uncertainty = max(map(known_within, clocks, workers.read_clocks()))
        info = StageInfo(
            name=stage.name,
            rate=None if stage.is_closed else stage.rates()[0],
            users=stage.users,
            started=round(started, 6),
            warm_up_ended=round(started + stage.warm_up_seconds, 6),
            sending_ended=round(max(one.sending_ended for one in done), 6),
            drained=round(max(one.drained for one in done), 6),
            ramp_to=None if stage.ramp_to is None else stage.rates()[1],
            is_search_step=is_search_step,
            clock_uncertainty=round(uncertainty, 6),
        )
        progress = self._progress
        progress.stages.append(info)
        progress.wall_seconds += info.drained - info.started
        progress.cpu_seconds += sum(one.cpu_seconds for one in done)
        if workers.is_distributed:
            now = os.times()
            progress.cpu_seconds += now.user + now.system - own_cpu.user - own_cpu.system
        progress.nice = max(one.nice for one in done)
        for one in done:
            self._sample.merge(one.sampled, one.population)
        measured = [record for record in records if info.measures(record)]
        self._log(progress_line(info, measured, self._objective))
        return measured


def _make_folder(folder: Path) -> None:
    if RunFolder(folder).records_file.exists():
        raise CoordinationFailed(f"{folder} already contains a run; set another folder with --output")
    folder.mkdir(parents=True, exist_ok=True)
