"""An engine in a process of its own, seen from the process that serves: no step waits for anybody else's Python."""

import logging
import multiprocessing
import threading
import time

from bundle.loading import Bundle
from server.engine.engine import EngineObserver
from server.engine.scheduler import Scheduler
from server.interface.errors import EngineFailed
from server.interface.request import Completion, Request
from server.workers.listener import EngineListener
from server.workers.message_pipe import MessagePipe
from server.workers.messages import CompletionMessage, EngineSettings, Orders, StatusMessage, SubmitMessage
from server.workers.process_main import run_engine

_log = logging.getLogger("kvasir.workers")

_RESTART_SECONDS = 1.0  # between attempts to start a process again
_END_SECONDS = 5.0  # for a process to end by itself
_UNGUARDED = (
    "; it has written why. Engines import the program that starts them: if that is one of your own, it must start them "
    'below `if __name__ == "__main__":`'
)

# Not fork: this process has threads.
_processes = multiprocessing.get_context("spawn")


class ProcessWorker:
    """Starts the process, sends it whom the scheduler admits, and tells a listener what comes of them.

    A process that dies gives back the requests it had, and is started again.
    """

    def __init__(
        self,
        bundle: Bundle,
        settings: EngineSettings,
        scheduler: Scheduler,
        listener: EngineListener,
        replica: int,
        observer: EngineObserver | None,
    ) -> None:
        self._bundle = bundle
        self._settings = settings
        self._scheduler = scheduler
        self._listener = listener
        self._replica = replica
        self._observer = observer
        self._name = f"engine-{replica}"
        self._lock = threading.Lock()  # over everything that the event loop's thread and ours both change
        self._running: dict[int, Request] = {}
        self._num_rows_taken = 0
        self._last_heard = time.monotonic()
        self._is_down = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._listen, name=self._name, daemon=True)
        self._launch()

    def warm_up(self) -> None:
        """Wait until the engine has decoded its first sentence. Raises what prevented that."""
        try:
            problem = self._receive()
        except (EOFError, OSError):
            self._process.join(_END_SECONDS)
            hint = _UNGUARDED if (self._process.exitcode or 0) > 0 else ""
            raise EngineFailed(f"the process of an engine ended at its start, {self._how_it_ended()}{hint}") from None
        if isinstance(problem, Exception):
            raise problem

    def start(self) -> None:
        """Start to listen, after `warm_up`."""
        self._thread.start()

    def look_for_work(self) -> None:
        """Give the engine whom the scheduler admits; called when somebody came or left."""
        with self._lock:
            admission = self._scheduler.admit(self._replica, now := time.monotonic())
            if admission.admitted and not self._running:
                self._last_heard = now
            self._running |= {request.id: request for request in admission.admitted}
            ours = [request.id for request, _ in admission.dropped if self._running.pop(request.id, None) is not None]
            if admission.admitted or ours:
                self._orders.send(Orders([SubmitMessage.of(request) for request in admission.admitted], ours))
        for request, _ in admission.dropped:
            request.timings.finished = now
        if admission.dropped:
            self._listener.ended([Completion(request, [], reason) for request, reason in admission.dropped])

    @property
    def num_rows_taken(self) -> int:
        """Rows that belong to a request, as the engine has last said."""
        return self._num_rows_taken

    @property
    def silent_seconds(self) -> float:
        """Since when an engine that has work, or ought to be there, has not been heard of."""
        return time.monotonic() - self._last_heard if self._running or self._is_down else 0.0

    def close(self) -> None:
        """End the process, after its step, and the thread that listens to it."""
        self._closing.set()
        self._orders.end()
        self._end()
        if self._thread.ident is not None:
            self._thread.join()
            self._end()  # one that was on its way up
        self._orders.join()
        self._connection.close()

    def _launch(self) -> None:
        ours, theirs = _processes.Pipe()
        process = _processes.Process(
            target=run_engine, args=(theirs, self._bundle, self._settings), name=self._name, daemon=True
        )
        process.start()
        theirs.close()  # or the pipe would not end with the process
        self._connection, self._process = ours, process
        self._orders = MessagePipe(ours, f"orders-{self._replica}")

    def _end(self) -> None:
        self._process.join(_END_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _listen(self) -> None:
        while True:
            try:
                report = self._receive()
                assert isinstance(report, StatusMessage), "an engine that runs sends nothing else"
                self._take(report)
            except (EOFError, OSError):
                if self._closing.is_set():
                    return
                self._start_again()
            self.look_for_work()

    def _receive(self) -> StatusMessage | Exception | None:
        """The next message that is no log line; those are written here."""
        while True:
            message: StatusMessage | Exception | logging.LogRecord | None = self._connection.recv()
            if not isinstance(message, logging.LogRecord):
                return message
            logging.getLogger(message.name).handle(message)

    def _take(self, report: StatusMessage) -> None:
        with self._lock:  # a request is dropped or ends, not both
            self._last_heard = now = time.monotonic()
            self._num_rows_taken = report.num_rows_taken
            progress = [(self._running[each], tokens) for each, tokens in report.progress if each in self._running]
            ended = [_completion(self._running.pop(each.id), each) for each in report.ended if each.id in self._running]
            if ended:
                self._scheduler.retire(self._replica, [completion.request for completion in ended], now)
        if self._observer is not None:
            for rows, seconds in report.steps:
                self._observer.step(rows, seconds)
        if progress:
            self._listener.progressed(progress)
        if ended:
            self._listener.ended(ended)

    def _start_again(self) -> None:
        """Give back what the process had that has just died, and start another one, as often as it takes."""
        self._process.join(_END_SECONDS)
        self._orders.end()
        with self._lock:
            self._is_down, self._num_rows_taken, self._last_heard = True, 0, time.monotonic()
            lost = list(self._running.values())
            self._running.clear()
            self._scheduler.retire(self._replica, lost, self._last_heard)
            self._scheduler.set_absent(self._replica, True)
        _log.error("the process of %s has ended, %s, with %d requests", self._name, self._how_it_ended(), len(lost))
        self._listener.lost(lost, f"the process that decoded this request ended, {self._how_it_ended()}")
        while not self._closing.is_set():
            try:
                self._launch()
                self.warm_up()
            except Exception:  # noqa: BLE001 - whatever it was, the next attempt may do better
                _log.exception("%s could not be started again", self._name)
                self._orders.end()
                self._closing.wait(_RESTART_SECONDS)
            else:
                self._is_down = False
                self._scheduler.set_absent(self._replica, False)
                _log.info("%s was started again", self._name)
                break
        if self._closing.is_set():
            self._orders.end()

    def _how_it_ended(self) -> str:
        code = self._process.exitcode
        return "not yet" if code is None else f"by signal {-code}" if code < 0 else f"with exit code {code}"


def _completion(request: Request, ended: CompletionMessage) -> Completion:
    timings = request.timings
    timings.encoded, timings.seated, timings.first_token, timings.finished = ended.stations
    error = None if ended.error is None else EngineFailed(ended.error)
    return Completion(request, ended.hypotheses, ended.finish_reason, error)
