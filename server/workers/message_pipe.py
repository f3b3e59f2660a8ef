"""Sending end of the pipe to a worker process. `send` never blocks."""

import pickle
import select
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue

# A pipe that Linux reports as writable has room for several times this size.
_DIRECT_BYTES = 16 * 1024


class MessagePipe:
    """One end of a pipe, for messages that the other end reads with `Connection.recv`.

    An engine that is busy or hangs reads nothing, and a pipe holds some 200 KB. The event loop must not wait for space
    in it, nor the reader of status messages, for which the engine may be waiting in turn. So messages without space
    are sent by a thread; others are sent directly, because a thread would wait for the interpreter first.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._writable = select.poll()
        self._writable.register(connection, select.POLLOUT)
        self._unsent: SimpleQueue[bytes | None] = SimpleQueue()
        self._num_unsent = 0
        self._thread = threading.Thread(target=self._send_rest, name=name, daemon=True)
        self._thread.start()

    def send(self, message: object) -> None:
        """Send a message after all earlier ones. Messages to a process that is gone are discarded without an error."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._lock:
            if not self._num_unsent and len(data) <= _DIRECT_BYTES and self._writable.poll(0):
                with suppress(OSError):
                    self._connection.send_bytes(data)
            else:
                self._num_unsent += 1
                self._unsent.put(data)

    def end(self) -> None:
        """Let the engine exit when it has read everything; later messages are not sent."""
        with self._lock:
            self._num_unsent += 1
            self._unsent.put(None)

    def join(self) -> None:
        """Block until the last message is sent or the process is gone."""
        self._thread.join()

    def _send_rest(self) -> None:
        with suppress(OSError):
            while (data := self._unsent.get()) is not None:
                self._connection.send_bytes(data)
                with self._lock:
                    self._num_unsent -= 1
            self._connection.send(None)
