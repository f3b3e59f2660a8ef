"""A worker: the requests that Locust's users in this process send, and their records.

Each worker process of a distributed test has one, and so does the only process of a local test. It exchanges Locust's
messages with the coordinator in both cases.
"""

import gc
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import gevent
from gevent.event import Event
from gevent.pool import Group
from locust import User, task
from locust.env import Environment

from loadtest.coordination.answer_check import AnswerSample, SampledAnswer
from loadtest.results.records import Outcome, Record
from loadtest.sending.addresses import address_of
from loadtest.sending.connections import Connections
from loadtest.sending.exchange import MAX_ANSWER_SECONDS, Place, Prepared, perform, prepared
from loadtest.workload.arrivals import arrival_times
from loadtest.workload.requests import request_sequence
from loadtest.workload.scenario import Scenario, Stage

STAGE, STOP = "kvasir_stage", "kvasir_stop"  # from the coordinator
RECORDS, DONE, FAILED = FROM_WORKERS = ("kvasir_records", "kvasir_done", "kvasir_failed")


@dataclass(frozen=True, slots=True)
class StageAssignment:
    """One worker's part of a stage. Sent as a dictionary."""

    scenario: str  # JSON
    stage: str  # JSON
    url: str
    seed: int
    worker: int  # sends requests number `worker`, `worker + num_workers`, and so on
    num_workers: int
    sample_size: int  # of the answers to check
    now: float  # seconds since the run's start at which this was sent
    at: float  # start of the stage, on the same clock


@dataclass(frozen=True, slots=True)
class StageDone:
    """Result of one worker's part of a stage. Sent as a dictionary, after the last records."""

    worker: int
    started: float  # seconds since the run's start, as all times
    sending_ended: float
    drained: float
    cpu_seconds: float
    nice: int
    sampled: tuple[SampledAnswer, ...]  # answers to check
    population: int  # number of answers they were drawn from


def clock_from(now: float) -> Callable[[], float]:
    """Return the clock of a run whose time is `now`, in seconds since its start.

    Each worker has its own: it begins with the time in a message, and so differs from the coordinator's by the delay of
    the message. Lag and latency are differences of one worker's clock.
    """
    zero = time.perf_counter() - now
    return lambda: time.perf_counter() - zero


MAX_PAUSE_SECONDS = 5.0  # limit of a Retry-After that a rejected user obeys
NO_ANSWER_PAUSE_SECONDS = 0.5  # otherwise an unreachable server would receive a thousand requests per second
_DRAIN_SECONDS = MAX_ANSWER_SECONDS + 5.0
_MIN_HEAD_START_SECONDS = 0.05
_MAX_HELD_RECORDS = 5000  # above this, records are reported in batches while requests are sent
_BATCH = 50  # writing a batch takes about 2 ms, in which no request is sent


class ScenarioUser(User):
    """Locust's user. In an open loop one of each worker sends every arrival on time, without waiting for answers.

    In a closed loop a stage has many, each of which waits for its answer before it sends the next request.
    """

    worker: "Worker"
    _pause = 0.0

    @task
    def send(self) -> None:
        """Send the next request of the current stage."""
        self._pause = self.worker.take_turn(self)

    def wait_time(self) -> float:
        """Return the seconds until the next arrival, or the pause of a rejected user."""
        return self._pause


class Worker:
    """Runs one stage at a time, as requested by messages."""

    def __init__(self, environment: Environment) -> None:
        assert environment.runner is not None
        self._environment = environment
        self._send_message: Callable[[str, dict[str, object]], None] = environment.runner.send_message
        self._connections: tuple[str, Connections] | None = None
        self._stage: _StagePart | None = None
        self._is_sending = Event()
        ScenarioUser.worker = self
        environment.runner.register_message(STAGE, lambda environment, msg: self._begin(msg.data))
        environment.runner.register_message(STOP, lambda environment, msg: self.interrupt())

    def take_turn(self, user: object) -> float:
        """Send the next request that is due and return the seconds until the user's next turn; wait between stages."""
        self._is_sending.wait()
        assert self._stage is not None
        pause = self._stage.take_turn(user)
        if pause is None:
            self._is_sending.clear()
        return pause or 0.0

    def interrupt(self) -> bool:
        """End the current stage after the answers in flight. Return False if there is none."""
        if self._stage is None or self._stage.is_over or self._stage.stopped.is_set():
            return False
        self._stage.stopped.set()
        return True

    def _begin(self, data: dict[str, object]) -> None:
        """Run a stage in a greenlet. A failure is reported to the coordinator, which would otherwise wait forever."""
        assignment = StageAssignment(**data)  # type: ignore[arg-type]  # made by asdict
        greenlet = gevent.spawn(self._run, assignment, clock_from(assignment.now))
        greenlet.link_exception(lambda failed: self._send_message(FAILED, {"reason": f"{failed.exception}"}))

    def _run(self, assignment: StageAssignment, clock: Callable[[], float]) -> None:
        try:
            if self._connections is None or self._connections[0] != assignment.url:
                self._connections = assignment.url, Connections(address_of(assignment.url))
            stage = _StagePart(assignment, self._connections[1], clock, self._send_message, self._show)
        except (ValueError, OSError) as error:  # an unknown host or a missing file
            self._send_message(FAILED, {"reason": f"{error}"})
            return
        self._stage = stage
        self._is_sending.set()
        stage.finish()

    def _show(self, record: Record) -> None:
        """Count a record in Locust's statistics, for its web page; reports are not computed from them."""
        if record.finished is None:
            return
        is_fine = record.outcome in (Outcome.ANSWERED, Outcome.HUNG_UP)
        self._environment.events.request.fire(
            request_type=record.protocol,
            name=f"{record.stage}: {record.kind}",
            response_time=(record.finished - record.scheduled) * 1000,
            response_length=0,
            exception=None if is_fine else OSError(record.reason),
            context={},
        )


class _StagePart:
    """One worker's part of a stage."""

    def __init__(
        self,
        assignment: StageAssignment,
        connections: Connections,
        clock: Callable[[], float],
        send_message: Callable[[str, dict[str, object]], None],
        show: Callable[[Record], None],
    ) -> None:
        self.stopped = Event()
        self.is_over = False
        self._is_all_sent = Event()
        self._assignment = assignment
        self._stage = stage = Stage.model_validate_json(assignment.stage)
        scenario = Scenario.model_validate_json(assignment.scenario)
        self._sequence = request_sequence(scenario, assignment.seed, stage.name)
        self._address = address_of(assignment.url)
        self._connections = connections
        self._clock = clock
        self._send_message = send_message
        self._show = show
        self._sample = AnswerSample(assignment.sample_size, assignment.seed)
        self._in_flight = Group()
        self._users: dict[object, int] = {}
        self._records: list[Record] = []
        self._num_begun = 0
        self._num_recorded = 0
        self._flusher: gevent.Greenlet | None = None
        # When this worker's requests are due, from the start of the stage.
        times: list[float] = [] if stage.is_closed else arrival_times(stage, assignment.seed).tolist()
        self._times = times[assignment.worker :: assignment.num_workers]
        self._next = self._request(0)
        # Garbage collection must not scan all that exists already while requests are due.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 50, 1000)
        self._cpu_before = _cpu_seconds()
        self._started = max(assignment.at, clock() + _MIN_HEAD_START_SECONDS)
        self._ends = self._started + stage.seconds

    def take_turn(self, user: object) -> float | None:
        """Send the next request if it is due, and return the seconds until the next; None if no other will be due."""
        if self.stopped.is_set() or self._is_all_sent.is_set():
            return None
        return self._send_in_closed_loop(user) if self._stage.is_closed else self._send_arrival()

    def finish(self) -> None:
        """Wait until all is sent and answered, and report the end of the stage."""
        self.stopped.wait(max(self._ends - self._clock(), 0.0))
        if not self._stage.is_closed:
            gevent.wait([self._is_all_sent, self.stopped], timeout=_DRAIN_SECONDS, count=1)
            if not (self._is_all_sent.is_set() or self.stopped.is_set()):
                raise RuntimeError("Locust gave this worker no user, so that its requests were not sent")
        sending_ended = min(self._clock(), self._ends)
        self._in_flight.join(timeout=_DRAIN_SECONDS)
        self._in_flight.kill()
        drained = self._clock()
        cpu_seconds = _cpu_seconds() - self._cpu_before
        gc.unfreeze()
        if self._flusher is not None:
            self._flusher.join()
        self._report(0)
        if self._num_recorded != self._num_begun:
            lost = self._num_begun - self._num_recorded
            raise RuntimeError(f"{lost} requests have no record: a defect of the load test; see the traceback")
        done = StageDone(
            worker=self._assignment.worker,
            started=self._started,
            sending_ended=sending_ended,
            drained=drained,
            cpu_seconds=cpu_seconds,
            nice=os.nice(0),
            sampled=tuple(self._sample.answers()),
            population=self._sample.population,
        )
        self.is_over = True
        self._send_message(DONE, asdict(done))

    def _send_arrival(self) -> float | None:
        index = self._num_begun
        if index < len(self._times):
            due = self._started + self._times[index]
            if (wait := due - self._clock()) > 0:
                return wait
            self._start(self._next, due, None)
            gevent.sleep(0)  # sends it before the next one is prepared
            index += 1
        if index >= len(self._times):
            self._is_all_sent.set()
            return None
        self._next = self._request(index)
        return max(self._started + self._times[index] - self._clock(), 0.0)

    def _send_in_closed_loop(self, user: object) -> float | None:
        now = self._clock()
        if now >= self._ends:
            return None
        if now < self._started:
            return self._started - now
        place = self._assignment.worker + self._users.setdefault(user, len(self._users)) * self._assignment.num_workers
        pause = pause_after(self._start(self._request(self._num_begun), None, place).get())
        return max(min(pause, self._ends - self._clock()), 0.0)

    def _request(self, index: int) -> Prepared:
        """Return this worker's request of an index as bytes."""
        number = self._assignment.worker + index * self._assignment.num_workers
        return prepared(self._sequence(number), self._address)

    def _start(self, what: Prepared, due: float | None, user: int | None) -> gevent.Greenlet:
        """Send in a greenlet of its own, which outlives Locust's user. It returns the record."""
        self._num_begun += 1
        return self._in_flight.spawn(self._send, what, due, user)

    def _send(self, what: Prepared, due: float | None, user: int | None) -> Record:
        place = Place(self._stage.name, self._assignment.worker, user)
        record, answer = perform(what, due, place, self._connections, self._clock)
        self._num_recorded += 1
        self._records.append(record)
        if answer is not None:
            self._sample.offer(SampledAnswer(place.stage, record.number, answer.texts))
        self._show(record)
        if len(self._records) > _MAX_HELD_RECORDS and not self._flusher:
            self._flusher = gevent.spawn(self._report, _MAX_HELD_RECORDS // 2)
        return record

    def _report(self, num_held: int) -> None:
        """Report records in batches until `num_held` are left."""
        while len(self._records) > num_held:
            batch, self._records = self._records[:_BATCH], self._records[_BATCH:]
            self._send_message(RECORDS, {"lines": [record.to_json() for record in batch]})
            gevent.sleep(0)


def pause_after(record: Record) -> float:
    """Return the seconds before a user's next request: 0 unless the server rejected this one or is unreachable."""
    if record.outcome is Outcome.REJECTED:
        return min(1.0 if record.retry_after is None else record.retry_after, MAX_PAUSE_SECONDS)
    return 0.0 if record.status or record.outcome is Outcome.HUNG_UP else NO_ANSWER_PAUSE_SECONDS


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system
