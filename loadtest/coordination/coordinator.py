"""The coordinator of a run: lets the workers send one stage after the other, and writes the run folder."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import gevent
from gevent.queue import Empty, Queue
from locust import LoadTestShape
from locust.env import Environment
from locust.runners import MasterRunner
from pydantic import JsonValue, TypeAdapter

from loadtest.coordination.answer_check import AnswerSample, check_answers
from loadtest.coordination.knee_search import KneeSearch
from loadtest.coordination.machine import ProcessUse, machine_info, process_use, versions
from loadtest.coordination.server_metrics import MetricsPoller, served_models
from loadtest.coordination.worker import DONE, FAILED, RECORDS, STAGE, STOP, StageAssignment, StageDone, clock_from
from loadtest.results.objective import Objective, objective_of
from loadtest.results.percentiles import percentiles_ms
from loadtest.results.records import Outcome, Record, RecordWriter, record_from_json
from loadtest.results.run_folder import GeneratorInfo, RunFolder, RunInfo, ServerInfo, StageInfo
from loadtest.results.thresholds import Thresholds
from loadtest.sending.addresses import address_of
from loadtest.sending.connections import NO_CONNECTION
from loadtest.workload.scenario import Scenario, Stage

_HEAD_START_SECONDS = 0.2  # from the assignment of a stage to its first request
_DISTRIBUTED_HEAD_START_SECONDS = 0.5
_CHECK_SECONDS = 1.0
_USERS_SECONDS = 60.0  # until all users run
_MAX_SPAWN_RATE = 100.0


class CoordinationFailed(Exception):
    """The load test cannot continue."""


class StageShape(LoadTestShape):
    """The number of users that the current stage needs: one of each worker in an open loop."""

    users: int | None = None  # of a closed loop

    def reset_time(self) -> None:
        """Begin with an open loop; Locust calls it at the start of each test."""
        super().reset_time()  # type: ignore[no-untyped-call]
        self.users = None

    def tick(self) -> tuple[int, float]:
        """Return the number of users and how many of them start per second."""
        assert self.runner is not None
        num_workers = max(self.runner.worker_count, 1)  # type: ignore[attr-defined]  # of both runners that have shapes
        users = self.users or num_workers
        return users, min(float(users), _MAX_SPAWN_RATE)


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
        assert isinstance(environment.shape_class, StageShape)
        self._runner = environment.runner
        self._shape = environment.shape_class
        self._incoming = incoming
        self._workers: Sequence[str | None] = [None]  # None: in this process
        self._plan = plan
        self._log = log
        self._stopped = False
        self._is_sending = False
        self._run = RunFolder(plan.folder)
        self._progress = _Progress()
        self._sample = AnswerSample(plan.guard_requests, plan.seed)
        self._started_at = time.time()
        self._clock = clock_from(0.0)
        self._objective: Objective = objective_of(plan.scenario.model_dump(mode="json"))

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def stop(self) -> None:
        """Stop sending. `run` ends after the answers in flight."""
        self._stopped = True
        if self._is_sending:
            self._send_to_all(STOP)

    def run(self) -> RunFolder:
        """Search for the knee if necessary, send the stages, and check the answers.

        Raises `CoordinationFailed`, `ValueError` or `OSError`.
        """
        plan = self._plan
        address = address_of(plan.url)
        if self._is_distributed:
            self._workers = sorted(self._connected())  # later ones have no part in the test
            if not self._workers:
                raise CoordinationFailed("no worker is connected")
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
                    num_processes=len(self._workers) + self._is_distributed,
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
                share = _share_within(measured, self._objective)
                search.record(rate, share is not None and share >= self._objective.share)
        return search.knee

    def _check_reached(self, measured: Sequence[Record]) -> None:
        """Raise `CoordinationFailed` if no request had a connection: no lower rate would have one."""
        if measured and all(record.reason.startswith(NO_CONNECTION) for record in measured):
            reason = measured[0].reason
            raise CoordinationFailed(f"{self._plan.url} is unreachable: all {len(measured)} requests failed, {reason}")

    def _send_stage(self, stage: Stage, is_search_step: bool = False) -> list[Record]:
        """Run a stage on all workers and return the records of its measured window."""
        self._await_users(stage.users or len(self._workers))
        head_start = _DISTRIBUTED_HEAD_START_SECONDS if self._is_distributed else _HEAD_START_SECONDS
        own_cpu = os.times()
        self._incoming.queue.clear()
        self._is_sending = True
        at = self._clock() + head_start
        for index, worker in enumerate(self._workers):
            assignment = StageAssignment(
                scenario=self._plan.scenario.model_dump_json(),
                stage=stage.model_dump_json(),
                url=self._plan.url,
                seed=self._plan.seed,
                worker=index,
                num_workers=len(self._workers),
                sample_size=self._plan.guard_requests,
                now=self._clock(),
                at=at,
            )
            self._runner.send_message(STAGE, asdict(assignment), worker)
        if self._stopped:  # set while no worker was sending
            self._send_to_all(STOP)
        with RecordWriter(self._run.records_file) as writer:
            records, done = self._collect(writer)
        self._is_sending = False
        started = min(one.started for one in done)
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
        )
        progress = self._progress
        progress.stages.append(info)
        progress.wall_seconds += info.drained - info.started
        progress.cpu_seconds += sum(one.cpu_seconds for one in done)
        if self._is_distributed:
            used = os.times()
            progress.cpu_seconds += used.user + used.system - own_cpu.user - own_cpu.system
        progress.nice = max(one.nice for one in done)
        for one in done:
            self._sample.merge(one.sampled, one.population)
        measured = [record for record in records if info.measures(record)]
        self._log(_progress_line(info, measured, self._objective))
        return measured

    def _await_users(self, number: int) -> None:
        """Wait until Locust runs that many users."""
        self._shape.users = number
        with gevent.Timeout(_USERS_SECONDS, CoordinationFailed(f"Locust did not start {number} users")):
            while self._runner.user_count != number and not self._stopped:
                gevent.sleep(0.02)

    def _collect(self, writer: RecordWriter) -> tuple[list[Record], list[StageDone]]:
        """Write and return all records of a stage, and each worker's result."""
        records: list[Record] = []
        done: list[StageDone] = []
        while len(done) < len(self._workers):
            try:
                kind, data = self._incoming.get(timeout=_CHECK_SECONDS)
            except Empty:
                if self._is_distributed and (lost := set(self._workers) - self._connected()):
                    raise CoordinationFailed(
                        f"{len(lost)} of {len(self._workers)} workers disconnected; their requests are lost"
                    ) from None
                continue
            if kind == FAILED:
                raise CoordinationFailed(data["reason"])
            if kind == RECORDS:
                batch = [record_from_json(line) for line in data["lines"]]
                writer.write(batch)
                records.extend(batch)
            elif kind == DONE:
                done.append(_DONE_TYPE.validate_python(data))
        return records, done

    @property
    def _is_distributed(self) -> bool:
        return isinstance(self._runner, MasterRunner)

    def _connected(self) -> set[str]:
        assert isinstance(self._runner, MasterRunner)
        return {client.id for client in self._runner.clients.all if client.state != "missing"}

    def _send_to_all(self, kind: str) -> None:
        for worker in self._workers:
            self._runner.send_message(kind, {}, worker)


_DONE_TYPE = TypeAdapter(StageDone)


def _share_within(records: Sequence[Record], objective: Objective) -> float | None:
    """Return the share of requests answered within the objective, of those that count for it."""
    counted = sum(objective.counts(record) for record in records)
    return sum(objective.is_met_by(record) for record in records) / counted if counted else None


def _progress_line(stage: StageInfo, measured: Sequence[Record], objective: Objective) -> str:
    answered = [r.latency for r in measured if r.outcome is Outcome.ANSWERED and r.latency is not None]
    latency, share = percentiles_ms(answered), _share_within(measured, objective)
    parts = [f"{stage.name}: {len(answered)} of {len(measured)} requests answered"]
    parts += [] if latency is None else [f"p95 {latency.p95:.0f} ms"]
    return ", ".join(parts if share is None else [*parts, f"{share:.1%} in time"])


def _make_folder(folder: Path) -> None:
    if RunFolder(folder).records_file.exists():
        raise CoordinationFailed(f"{folder} already contains a run; set another folder with --output")
    folder.mkdir(parents=True, exist_ok=True)
