"""Limit on open connections, so that the process keeps file descriptors for its other work."""

import logging
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

_log = logging.getLogger("kvasir")

_MIN_CONNECTIONS = 8
_MIN_RESERVE, _MAX_RESERVE = 16, 2048
_RESERVE_SHARE = 8  # of all descriptors, twice: for files and processes, and for connections that are being accepted
_MAX_DESCRIPTORS = 1 << 20
_LOG_SECONDS = 5.0


class Connection(Protocol):
    """An open connection."""

    def close_idle(self) -> None:
        """Close the connection, which has no request in progress."""
        ...


class ConnectionTable:
    """Open connections. Beyond `max_connections`, each new one closes the one that has been idle for longest.

    Connections without a complete request head are idle, too. While none is, new connections are `excess`: they are
    served health probes and metrics. Beyond `num_reserved` of them, each new one closes an idle one of these, or is
    refused: two probes at once must not close each other.
    """

    def __init__(self, max_connections: int, num_reserved: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.max_connections = max_connections
        self.num_reserved = num_reserved
        self._clock = clock
        self._open: set[Connection] = set()
        self._excess: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # the first has been idle for longest
        self._idle_excess: dict[Connection, None] = {}
        self._num_closed = 0
        self._next_log = 0.0

    def add(self, connection: Connection) -> tuple[bool, bool]:
        """Add a new connection. Return whether it is accepted, and whether it is an excess one."""
        while len(self._open) >= self.max_connections and self._idle:
            self._close_oldest(self._idle)
        num_working = len(self._open) - len(self._idle_excess)
        while len(self._open) >= self.max_connections > num_working:
            self._close_oldest(self._idle_excess)
        num_excess = len(self._open) - self.max_connections
        if num_excess >= self.num_reserved:
            if not self._idle_excess:
                self.note_closed()
                return False, True
            self._close_oldest(self._idle_excess)
        self._open.add(connection)
        if num_excess >= 0:
            self._excess.add(connection)
        return True, num_excess >= 0

    def _close_oldest(self, idle: dict[Connection, None]) -> None:
        oldest = next(iter(idle))
        self.remove(oldest)
        oldest.close_idle()
        self.note_closed()

    def set_idle(self, connection: Connection, *, is_idle: bool) -> None:
        """Note that a connection waits for a request, or works on one."""
        idle = self._idle_excess if connection in self._excess else self._idle
        idle.pop(connection, None)
        if is_idle and connection in self._open:
            idle[connection] = None

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        self._excess.discard(connection)
        self._idle.pop(connection, None)
        self._idle_excess.pop(connection, None)

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

    @property
    def num_idle(self) -> int:
        """The number of connections without a request in progress."""
        return len(self._idle) + len(self._idle_excess)

    def note_closed(self) -> None:
        """Log that a connection is closed for want of descriptors, at most once in five seconds."""
        self._num_closed += 1
        if (now := self._clock()) >= self._next_log:
            self._next_log = now + _LOG_SECONDS
            fields = {"closed": self._num_closed, "limit": self.max_connections}
            _log.warning("connections closed: no file descriptors for more", extra=fields)
            self._num_closed = 0


def connection_table() -> ConnectionTable:
    """Return a table for the descriptors that are left, after raising their limit as far as the process may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    num_used = sum(1 for _ in Path("/dev/fd").iterdir())
    reserve = min(max(limit // _RESERVE_SHARE, _MIN_RESERVE), _MAX_RESERVE)
    return ConnectionTable(max(limit - num_used - 2 * reserve, _MIN_CONNECTIONS), reserve)
