"""A worker: prepares its part of a stage's requests, sends them on time and reports their records.

Each worker process of a distributed test has one, and so does the only process of a local test. It exchanges Locust's
messages with the coordinator in both cases.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict

import gevent
from gevent.event import Event
from gevent.pool import Group
from locust.env import Environment

from loadtest.coordination.answer_check import AnswerSample, SampledAnswer
from loadtest.coordination.messages import (
    CLOCK,
    CLOCK_READ,
    DONE,
    FAILED,
    GO,
    PREPARE,
    PREPARED,
    RECORDS,
    STOP,
    StageAssignment,
    StageDone,
    assignment_of,
)
from loadtest.results.clock import RunClock
from loadtest.results.records import Outcome, Record
from loadtest.sending.addresses import address_of
from loadtest.sending.closed_loop import run_user
from loadtest.sending.connections import Connections
from loadtest.sending.exchange import MAX_ANSWER_SECONDS, Place, Prepared, perform, prepared
from loadtest.sending.open_loop import dispatch
from loadtest.workload.arrivals import arrival_times
from loadtest.workload.requests import request_sequence
from loadtest.workload.scenario import Scenario, Stage

_DRAIN_SECONDS = MAX_ANSWER_SECONDS + 5.0
_MAX_HELD_RECORDS = 5000  # above this, records are reported in batches while requests are sent
_BATCH = 50  # writing a batch takes about 2 ms, in which no request is sent
_MAX_PREPARED = 20_000  # takes a few seconds and about 20 MB
_PREPARED_AT_ONCE = 50  # then other greenlets run: a master drops a worker without heartbeats


class Worker:
    """Runs one stage at a time, as requested by messages."""

    def __init__(self, environment: Environment) -> None:
        assert environment.runner is not None
        self._environment = environment
        self._runner = environment.runner
        self._connections: tuple[str, Connections] | None = None
        self._stage: _WorkerStage | None = None
        for message, listener in (
            (PREPARE, self._on_prepare),
            (CLOCK, self._on_clock),
            (GO, self._on_go),
            (STOP, self._on_stop),
        ):
            self._runner.register_message(message, lambda environment, msg, listener=listener: listener(msg.data))

    def _on_prepare(self, data: dict[str, object]) -> None:
        self._begin(self._prepare, assignment_of(data))

    def _on_clock(self, data: dict[str, float]) -> None:
        self._runner.send_message(CLOCK_READ, {"asked": data["asked"], "read": time.perf_counter()})

    def _on_go(self, data: dict[str, float]) -> None:
        assert self._stage is not None
        self._begin(self._stage.run, data["at"], RunClock(data["clock_zero"]))

    def _begin(self, what: Callable[..., None], *arguments: object) -> None:
        """Call it in a greenlet. A failure is reported to the coordinator, which would otherwise wait forever."""
        greenlet = gevent.spawn(what, *arguments)
        greenlet.link_exception(lambda failed: self._runner.send_message(FAILED, {"reason": f"{failed.exception}"}))

    def _prepare(self, assignment: StageAssignment) -> None:
        try:
            if self._connections is None or self._connections[0] != assignment.url:
                self._connections = assignment.url, Connections(address_of(assignment.url))
            self._stage = _WorkerStage(assignment, self._connections[1], self._runner.send_message, self._show)
        except (ValueError, OSError) as error:  # an unknown host or a missing file
            self._runner.send_message(FAILED, {"reason": f"{error}"})
        else:
            self._stage.prepare()

    def interrupt(self) -> bool:
        """End the current stage after the answers in flight. Return False if there is none."""
        if self._stage is None or self._stage.is_over or self._stage.stopped.is_set():
            return False
        self._stage.stopped.set()
        return True

    def _on_stop(self, _data: object) -> None:
        if self._stage is not None:
            self._stage.stopped.set()

    def _show(self, record: Record) -> None:
        """Show a record on Locust's web page and in its table; totals are not computed from them."""
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


class _WorkerStage:
    """One worker's part of a stage."""

    def __init__(
        self,
        assignment: StageAssignment,
        connections: Connections,
        send_message: Callable[[str, dict[str, object]], None],
        show: Callable[[Record], None],
    ) -> None:
        self.stopped = Event()
        self.is_over = False
        self._assignment = assignment
        self._stage = Stage.model_validate_json(assignment.stage)
        self._scenario = Scenario.model_validate_json(assignment.scenario)
        self._address = address_of(assignment.url)
        self._connections = connections
        self._send_message = send_message
        self._show = show
        self._clock = RunClock(0.0)  # `run` receives the run's clock
        self._sample = AnswerSample(assignment.sample_size, assignment.seed)
        self._sequence = request_sequence(self._scenario, assignment.seed, self._stage.name)
        self._times: list[float] = []  # when this worker's requests are due, from the start of the stage
        self._prepared: list[Prepared] = []
        self._records: list[Record] = []
        self._num_begun = 0
        self._num_recorded = 0
        self._flusher: gevent.Greenlet | None = None

    def prepare(self) -> None:
        """Prepare the requests of an open-loop stage, so that they only need to be sent."""
        if not self._stage.is_closed:
            assignment = self._assignment
            times = arrival_times(self._stage, assignment.seed)
            self._times = times[assignment.worker :: assignment.num_workers].tolist()
            for index in range(min(len(self._times), _MAX_PREPARED)):
                self._prepared.append(self._request(assignment.worker + index * assignment.num_workers))
                if index % _PREPARED_AT_ONCE == 0:
                    gevent.sleep(0)
        self._send_message(PREPARED, {"worker": self._assignment.worker})

    def run(self, started: float, clock: RunClock) -> None:
        """Send from `started` on the run's clock, wait for the answers, and report the end of the stage."""
        self._clock = clock
        # Garbage collection must not scan the prepared requests while requests are due.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 50, 1000)
        cpu_before = _cpu_seconds()
        ends = started + self._stage.seconds
        in_flight = Group()
        self._wait_until(started)
        if self._stage.is_closed:
            self._start_users(in_flight, ends)
        else:
            dispatch(self._arrivals(started), self._send, self._clock, self.stopped, in_flight)
        self._wait_until(ends)
        sending_ended = min(self._clock(), ends)
        in_flight.join(timeout=_DRAIN_SECONDS)
        in_flight.kill()
        drained = self._clock()
        cpu_seconds = _cpu_seconds() - cpu_before
        gc.unfreeze()
        if self._flusher is not None:
            self._flusher.join()
        self._report(0)
        if self._num_recorded != self._num_begun:
            lost = self._num_begun - self._num_recorded
            raise RuntimeError(f"{lost} requests have no record: a defect of the load test; see the traceback")
        done = StageDone(
            worker=self._assignment.worker,
            sending_ended=sending_ended,
            drained=drained,
            cpu_seconds=cpu_seconds,
            nice=os.nice(0),
            sampled=tuple(self._sample.answers()),
            population=self._sample.population,
        )
        self.is_over = True
        self._send_message(DONE, asdict(done))

    def _start_users(self, in_flight: Group, ends: float) -> None:
        num_users = self._stage.users or 0
        for user in range(self._assignment.worker, num_users, self._assignment.num_workers):
            in_flight.spawn(
                run_user,
                user,
                num_users,
                self._request,
                lambda what, user=user: self._send(what, None, user),
                lambda: ends - self._clock(),
                self.stopped,
            )

    def _arrivals(self, started: float) -> Iterator[tuple[float, Prepared]]:
        """Yield the requests with their instants. Those beyond `_MAX_PREPARED` are prepared while the stage runs."""
        assignment = self._assignment
        for index, offset in enumerate(self._times):
            ready = index < len(self._prepared)
            what = self._prepared[index] if ready else self._request(assignment.worker + index * assignment.num_workers)
            yield started + offset, what

    def _request(self, number: int) -> Prepared:
        return prepared(self._sequence(number), self._address)

    def _wait_until(self, instant: float) -> None:
        while (wait := instant - self._clock()) > 0 and not self.stopped.is_set():
            self.stopped.wait(wait)

    def _send(self, what: Prepared, due: float | None, user: int | None = None) -> Record:
        place = Place(self._stage.name, self._assignment.worker, user)
        self._num_begun += 1
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


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system
