"""Orders on their way to the process of an engine: whoever gives one never waits for the process to read it."""

import select
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue

from server.workers.messages import Orders

# A pipe that Linux calls writable has room for several times as much.
_AT_ONCE_BYTES = 16 * 1024


class MessagePipe:
    """One end of a pipe, for messages of `Connection.recv`.

    An engine that is busy, or hangs, reads nothing, and a pipe holds some 200 KB. Neither the event loop may wait for
    that, nor who reads reports, for which the engine may be waiting in turn. So what has no room waits in a thread;
    what has room is sent at once, because a thread would wait for the interpreter first.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._room = select.poll()
        self._room.register(connection, select.POLLOUT)
        self._unsent: SimpleQueue[bytes | None] = SimpleQueue()
        self._num_unsent = 0
        self._thread = threading.Thread(target=self._send_rest, name=name, daemon=True)
        self._thread.start()

    def send(self, orders: Orders) -> None:
        """Send it after what was sent before. A process that is gone gets nothing, and that is no error here."""
        message = bytes(ForkingPickler.dumps(orders))
        with self._lock:
            if not self._num_unsent and len(message) <= _AT_ONCE_BYTES and self._room.poll(0):
                with suppress(OSError):
                    self._connection.send_bytes(message)
            else:
                self._num_unsent += 1
                self._unsent.put(message)

    def end(self) -> None:
        """Tell the engine to end when it has read everything; nothing is sent after that."""
        with self._lock:
            self._num_unsent += 1
            self._unsent.put(None)

    def join(self) -> None:
        """Wait for the last message to be sent, or the process to be gone."""
        self._thread.join()

    def _send_rest(self) -> None:
        with suppress(OSError):
            while (message := self._unsent.get()) is not None:
                self._connection.send_bytes(message)
                with self._lock:
                    self._num_unsent -= 1
            self._connection.send(None)
