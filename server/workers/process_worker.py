"""An engine in its own process, as seen by the server process: no step waits for the Python of another thread."""

import logging
import math
import selectors
import threading
import time

from bundle.loading import Bundle, check_unchanged
from server.engine.engine import EngineObserver, StreamUpdate
from server.engine.scheduler import Scheduler
from server.interface.errors import EngineFailed
from server.interface.request import Completion, Request
from server.workers.forkserver import PROCESSES
from server.workers.message_pipe import MessagePipe
from server.workers.process_main import (
    AdmissionMessage,
    CompletionMessage,
    EngineSettings,
    StatusMessage,
    SubmitMessage,
    run_engine,
)
from server.workers.thread_worker import SILENCE_SECONDS, EngineListener

_log = logging.getLogger("kvasir.workers")

_WATCH_SECONDS = 0.5  # between looks at a process that sends nothing
_START_SECONDS = 120.0  # for a process to start again
_RESTART_SECONDS = 1.0  # between attempts to restart a process
_END_SECONDS = 5.0  # for a process to exit by itself
_UNGUARDED = (
    "; its log has the cause. Worker processes import the main program: a program of your own must start engines below "
    '`if __name__ == "__main__":`'
)


class ProcessWorker:
    """Worker process: starts it, sends it admitted requests, and passes their results to a listener.

    The requests of a process that dies are passed to the listener as lost, and the process is restarted.
    """

    def __init__(
        self,
        bundle: Bundle,
        settings: EngineSettings,
        scheduler: Scheduler,
        listener: EngineListener,
        replica: int,
        observer: EngineObserver | None,
        heartbeat_limit_seconds: float = math.inf,
    ) -> None:
        self._bundle = bundle
        self._settings = settings
        self._scheduler = scheduler
        self._listener = listener
        self._replica = replica
        self._observer = observer
        self._name = f"engine-{replica}"
        self._lock = threading.Lock()  # of everything that the event loop's thread and this one change
        self._running: dict[int, Request] = {}
        self._num_rows_taken = 0
        self._last_status = time.monotonic()
        self._is_down = False
        self.cannot_start = False  # since it died; the last attempt failed
        self._is_silent = False
        # Before probes report it as stuck.
        self._kill_seconds = max(heartbeat_limit_seconds - 2 * _WATCH_SECONDS, _WATCH_SECONDS)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._listen, name=self._name, daemon=True)
        self._launch()

    def warm_up(self) -> None:
        """Block until the engine has decoded its first sentence. Raises the exception that prevented it."""
        try:
            message = self._receive()
        except (EOFError, OSError):
            self._process.join(_END_SECONDS)
            hint = _UNGUARDED if (self._process.exitcode or 0) > 0 else ""
            raise EngineFailed(f"the worker process exited at its start {self._exit_status()}{hint}") from None
        if isinstance(message, Exception):
            raise message

    def start(self) -> None:
        """Start the thread that listens to the process, after `warm_up`."""
        self._thread.start()

    def wake(self) -> None:
        """Send admissions of the scheduler to the engine; called when a request arrives, ends or expires."""
        with self._lock:
            admission = self._scheduler.admit(self._replica, now := time.monotonic())
            if admission.admitted and not self._running:
                self._last_status = now
            self._running |= {request.id: request for request in admission.admitted}
            dropped = [
                request.id for request, _ in admission.dropped if self._running.pop(request.id, None) is not None
            ]
            if admission.admitted or dropped:
                self._pipe.send(
                    AdmissionMessage([SubmitMessage.of(request) for request in admission.admitted], dropped)
                )
        for request, _ in admission.dropped:
            request.timings.finished = now
        if admission.dropped:
            self._listener.ended([Completion(request, [], reason) for request, reason in admission.dropped])

    @property
    def num_rows_taken(self) -> int:
        """Rows assigned to requests, according to the last status."""
        return self._num_rows_taken

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last status of an engine that has work or is down; otherwise 0."""
        return time.monotonic() - self._last_status if self._running or self._is_down else 0.0

    @property
    def is_responsive(self) -> bool:
        """Whether the process runs, and reports while it has work."""
        return not (self._is_down or self._is_silent)

    def close(self) -> None:
        """End the process after its step, and the thread that listens to it."""
        self._closing.set()
        self._pipe.end()
        self._end()
        if self._thread.ident is not None:
            self._thread.join()
            self._end()  # a process that was being restarted
        self._pipe.join()
        self._connection.close()

    def _launch(self) -> None:
        ours, theirs = PROCESSES.Pipe()
        process = PROCESSES.Process(
            target=run_engine, args=(theirs, self._bundle, self._settings), name=self._name, daemon=True
        )
        process.start()
        theirs.close()  # otherwise the pipe would not end with the process
        self._connection, self._process = ours, process
        # Connection.poll creates a selector in every call.
        self._incoming = selectors.DefaultSelector()
        self._incoming.register(ours, selectors.EVENT_READ)
        self._pipe = MessagePipe(ours, f"messages-{self._replica}")

    def _end(self) -> None:
        self._process.join(_END_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _listen(self) -> None:
        while True:
            try:
                if not self._incoming.select(_WATCH_SECONDS):
                    self._watch()
                    continue
                status = self._receive()
                assert isinstance(status, StatusMessage), "a running engine sends only status messages"
                self._handle(status)
            except (EOFError, OSError):
                if self._closing.is_set():
                    return
                self._restart()
            self.wake()

    def _watch(self) -> None:
        """Send no more work to a process that is silent, and kill it at the limit; `_restart` follows."""
        silent = self.silent_seconds
        if silent >= SILENCE_SECONDS and not self._is_silent:
            self._set_silent(True)
            fields = {"worker": self._name, "seconds": round(silent, 1), "requests": len(self._running)}
            _log.warning("worker process silent", extra=fields)
        if silent >= self._kill_seconds:
            _log.error("worker process killed", extra={"worker": self._name, "seconds": round(silent, 1)})
            self._process.kill()

    def _set_silent(self, is_silent: bool) -> None:
        self._is_silent = is_silent
        self._scheduler.set_absent(self._replica, is_silent)

    def _receive(self) -> StatusMessage | Exception | None:
        """Return the next message that is not a log record; log records are written."""
        while True:
            message: StatusMessage | Exception | logging.LogRecord | None = self._connection.recv()
            if not isinstance(message, logging.LogRecord):
                return message
            logging.getLogger(message.name).handle(message)

    def _handle(self, status: StatusMessage) -> None:
        if self._is_silent:
            self._set_silent(False)
        with self._lock:  # a request is dropped or completed, never both
            self._last_status = now = time.monotonic()
            self._num_rows_taken = status.num_rows_taken
            updates = [
                StreamUpdate(self._running[id_], tokens)
                for id_, tokens in status.stream_updates
                if id_ in self._running
            ]
            ended = [
                _completion(self._running.pop(message.id), message)
                for message in status.ended
                if message.id in self._running
            ]
            if ended:
                self._scheduler.retire(self._replica, [completion.request for completion in ended], now)
        if self._observer is not None:
            for rows, seconds in status.steps:
                self._observer.step(rows, seconds)
        if updates:
            self._listener.progressed(updates)
        if ended:
            self._listener.ended(ended)

    def _restart(self) -> None:
        """Return the requests of the process that died as lost, and start another process, until one starts."""
        self._process.join(_END_SECONDS)
        self._pipe.end()
        with self._lock:
            self._is_down, self._num_rows_taken, self._last_status = True, 0, time.monotonic()
            self._is_silent = False
            lost = list(self._running.values())
            self._running.clear()
            self._scheduler.retire(self._replica, lost, self._last_status)
            self._scheduler.set_absent(self._replica, True)
        exit_status = self._exit_status()
        _log.error("worker process exited", extra={"worker": self._name, "exit": exit_status, "requests": len(lost)})
        self._listener.lost(lost, f"the worker process of this request exited {exit_status}")
        while not self._closing.is_set():
            try:
                check_unchanged(self._bundle)
                self._launch()
                if not self._incoming.select(_START_SECONDS):
                    self._process.kill()
                self.warm_up()
            except Exception:  # noqa: BLE001 - the next attempt may succeed
                _log.exception("worker process not restarted", extra={"worker": self._name})
                self._pipe.end()
                self.cannot_start = True
                self._listener.not_restarted()
                self._closing.wait(_RESTART_SECONDS)
            else:
                self._is_down = self.cannot_start = False
                self._scheduler.set_absent(self._replica, False)
                _log.info("worker process restarted", extra={"worker": self._name})
                break
        if self._closing.is_set():
            self._pipe.end()

    def _exit_status(self) -> str:
        code = self._process.exitcode
        return "with unknown status" if code is None else f"by signal {-code}" if code < 0 else f"with exit code {code}"


def _completion(request: Request, message: CompletionMessage) -> Completion:
    timings = request.timings
    timings.encoded, timings.assigned, timings.first_token, timings.finished = message.times
    error = None if message.error is None else EngineFailed(message.error)
    return Completion(request, message.hypotheses, message.finish_reason, error)
