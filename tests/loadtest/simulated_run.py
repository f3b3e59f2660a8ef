"""Simulated run folders: a queue with several servers (M/G/k), seeded arrivals, a bound, and streams.

The times are a simulation's, so a test knows them exactly, and a second server can be made a known part slower.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from pathlib import Path

import numpy as np

from loadtest.results.records import Outcome, Record, RecordWriter
from loadtest.results.run_folder import (
    AnswerCheckResult,
    Difference,
    GeneratorInfo,
    MachineInfo,
    MetricsSample,
    RunFolder,
    RunInfo,
    ServerInfo,
    StageInfo,
)
from loadtest.results.thresholds import NO_THRESHOLDS, Thresholds

WARM_UP_SECONDS = 2.0
STEPS_PER_SECOND = 100.0
STEP_SECONDS = 0.008


@dataclass(frozen=True, slots=True)
class Load:
    """A stage to simulate."""

    name: str
    rate: float | None = None
    users: int | None = None
    seconds: float = 22.0
    is_search_step: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedServer:
    """A server that serves `num_servers` requests at a time and rejects others when `max_waiting` wait."""

    num_servers: int = 4
    max_waiting: int = 12
    slowness: float = 1.0  # multiplies every service time
    has_metrics: bool = True
    reports_phases: bool = True
    reports_tokens: bool = True
    generator_lag_seconds: float = 0.0004
    impatient_share: float = 0.0
    thresholds: Thresholds = NO_THRESHOLDS
    loads: tuple[Load, ...] = field(
        default=(
            Load("a quarter", rate=10.0),
            Load("half", rate=20.0),
            Load("three quarters", rate=32.0),
            Load("near the knee", rate=40.0),
            Load("past the knee", rate=50.0),
            Load("twice the knee", rate=80.0),
            Load("sixteen users", users=16),
        )
    )


def write_run(
    path: Path, server: SimulatedServer, seed: int = 1, label: str = "", answer_check: AnswerCheckResult | None = None
) -> RunFolder:
    """Write run.json, records.jsonl and, if there are any, metrics.jsonl and guard.json."""
    path.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(path)
    stages: list[StageInfo] = []
    records: list[Record] = []
    samples: list[MetricsSample] = []
    started = 0.0
    for place, load in enumerate(server.loads):
        of_stage = list(_records(load, server, started, np.random.default_rng([seed, place])))
        sending_ended = started + load.seconds
        drained = max([sending_ended, *(r.finished for r in of_stage if r.finished is not None)]) + 0.1
        stages.append(
            StageInfo(
                load.name,
                load.rate,
                load.users,
                started,
                started + WARM_UP_SECONDS,
                sending_ended,
                drained,
                is_search_step=load.is_search_step,
            )
        )
        records += of_stage
        if server.has_metrics:
            samples += _samples(of_stage, server, started, drained, samples[-1] if samples else None)
        started = drained + 0.5
    info = RunInfo(
        scenario={
            "name": "simulated",
            "objective": {"milliseconds": 400.0, "max_source_tokens": 64, "share": 0.99},
        },
        seed=seed,
        url="http://127.0.0.1:8000",
        label=label,
        started_at="2026-01-01T00:00:00Z",
        versions={"python": "3.11.9", "locust": "2.47.0"},
        machine=MachineInfo("a simulated processor", 2, "Linux"),
        generator=GeneratorInfo(cpu_seconds=started * 0.1, wall_seconds=started, num_processes=1, nice=0),
        server=ServerInfo({"models": [{"name": "en-de"}]} if server.has_metrics else None, started, None, None),
        knee=None,
        stages=tuple(stages),
        thresholds=server.thresholds,
    )
    folder.write_info(info)
    with RecordWriter(folder.records_file) as writer:
        writer.write(records)
    if samples:
        lines = (f'{{"at": {sample.at}, "metrics": {_json_of(sample.metrics)}}}\n' for sample in samples)
        folder.metrics_file.write_text("".join(lines), encoding="utf-8")
    if answer_check is not None:
        folder.write_answer_check(answer_check)
    return folder


def identical_answers() -> AnswerCheckResult:
    return AnswerCheckResult(checked=300, identical=300, population=2000, share=1.0, different=())


def different_answers() -> AnswerCheckResult:
    wrong = Difference(17, "twice the knee", "A <b>tea</b> & a biscuit.", "Ein Tee und ein Keks.", "Ein Tee und Keks.")
    return AnswerCheckResult(checked=300, identical=299, population=2000, share=299 / 300, different=(wrong,))


def _records(load: Load, server: SimulatedServer, started: float, random: np.random.Generator) -> Iterator[Record]:
    free = [started] * server.num_servers
    heapify(free)
    begins: list[float] = []  # of waiting requests
    arrivals = (
        _open_arrivals(load, started, random)
        if load.rate
        else [(started + i * 0.01, i) for i in range(load.users or 0)]
    )
    heapify(arrivals)
    number = 0
    while arrivals:
        due, user = heappop(arrivals)
        if due >= started + load.seconds:
            continue
        record = _one(load, server, number, due, user if load.users else None, free, begins, random)
        number += 1
        if load.users:
            heappush(arrivals, ((record.finished or due) + 0.001, user))
        yield record


def _open_arrivals(load: Load, started: float, random: np.random.Generator) -> list[tuple[float, int]]:
    assert load.rate
    gaps = random.exponential(1 / load.rate, size=int(load.rate * load.seconds * 2) + 20)
    return [(started + float(at), 0) for at in np.cumsum(gaps) if at < load.seconds]


def _one(
    load: Load,
    server: SimulatedServer,
    number: int,
    due: float,
    user: int | None,
    free: list[float],
    begins: list[float],
    random: np.random.Generator,
) -> Record:
    sent = due if user is not None else due + float(random.exponential(server.generator_lag_seconds))
    tokens = int(np.clip(random.lognormal(3.0, 0.75), 2, 400))
    kind = str(random.choice(["sentence", "stream", "paragraph"], p=[0.7, 0.2, 0.1]))
    if kind == "paragraph":
        tokens *= 3
    begins[:] = [begin for begin in begins if begin > sent]
    shared = {
        "number": number,
        "stage": load.name,
        "kind": kind,
        "protocol": "stream" if kind == "stream" else "native",
        "worker": 0,
        "user": user,
        "scheduled": due,
        "sent": sent,
        "source_tokens": int(tokens * 1.2),
        "source_tokens_estimated": True,
        "target_tokens": None,
        "num_sentences": 4 if kind == "paragraph" else 1,
        "num_texts": 1,
        "beam_size": None,
    }
    if len(begins) >= server.max_waiting:
        ended = sent + 0.002 + float(random.exponential(0.004))
        return Record(
            **shared,  # type: ignore[arg-type]  # every value has its field's type
            first_event=None,
            finished=ended,
            outcome=Outcome.REJECTED,
            status=429,
            reason="429 queue_full",
            retry_after=1.0,
        )
    begin = max(heappop(free), sent + 0.001)
    encode = 0.004 + 0.0001 * tokens
    decode = (0.015 + 0.0018 * tokens) * float(random.gamma(8, 1 / 8)) * server.slowness
    finished = begin + encode + decode
    heappush(free, finished)
    if begin > sent + 0.001:
        begins.append(begin)
    hangs_up = float(random.uniform()) < server.impatient_share
    patience = due + float(random.uniform(0.02, 0.3))
    if hangs_up and patience < finished:
        return Record(
            **shared,  # type: ignore[arg-type]
            first_event=None,
            finished=patience,
            outcome=Outcome.HUNG_UP,
            status=0,
            reason="hung up on purpose",
        )
    num_events = max(tokens // 2, 2)
    is_stream = kind == "stream"
    phases = {"tokenize": 0.4, "queue": (begin - sent - 0.001) * 1000, "encode": encode * 1000, "decode": decode * 1000}
    if server.reports_tokens:
        shared |= {"source_tokens": tokens, "source_tokens_estimated": False, "target_tokens": int(tokens * 1.1)}
    return Record(
        **shared,  # type: ignore[arg-type]
        first_event=begin + encode + decode / num_events if is_stream else None,
        finished=finished + 0.0015,
        outcome=Outcome.ANSWERED,
        status=200,
        reason="",
        phases_ms=phases if server.reports_phases else {},
        event_gaps=tuple([decode / num_events] * (num_events - 1)) if is_stream else (),
    )


def _samples(
    records: list[Record], server: SimulatedServer, start: float, end: float, last: MetricsSample | None
) -> Iterator[MetricsSample]:
    worked = [r for r in records if r.outcome is Outcome.ANSWERED and r.finished is not None]
    begins = [r.sent + r.phases_ms.get("queue", 0.0) / 1000 for r in worked]
    steps, rows = (last.metrics[f"kvasir_step_rows_{name}"] if last else 0.0 for name in ("count", "sum"))
    for at in np.arange(start, end):
        running = sum(b <= float(at) < (r.finished or at) for b, r in zip(begins, worked, strict=True))
        waiting = sum(r.sent <= float(at) < b for b, r in zip(begins, worked, strict=True))
        steps += STEPS_PER_SECOND
        rows += STEPS_PER_SECOND * running
        yield MetricsSample(
            float(at),
            {
                "kvasir_requests_waiting": waiting,
                "kvasir_requests_running": running,
                "kvasir_rows_in_use_ratio": running / server.num_servers,
                "kvasir_step_rows_count": steps,
                "kvasir_step_rows_sum": rows,
                "kvasir_step_seconds_count": steps,
                "kvasir_step_seconds_sum": steps * STEP_SECONDS,
            },
        )


def _json_of(metrics: dict[str, float]) -> str:
    return "{" + ", ".join(f'"{name}": {float(value)}' for name, value in metrics.items()) + "}"
