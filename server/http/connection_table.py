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
_RESERVE_SHARE = 8  # of all descriptors, twice: for files and processes, and for connections without a request
_MAX_DESCRIPTORS = 1 << 20
_LOG_SECONDS = 5.0


class Connection(Protocol):
    """An open connection."""

    def close_idle(self) -> None:
        """Close the connection, which has no request in progress."""
        ...


class ConnectionTable:
    """Open connections, of which `max_connections` may have a request in progress.

    `num_reserved` more may be open, for health probes, for metrics and for the refusal of all other requests. Beyond
    that, each new connection closes the one that has been idle for longest, or is refused. A connection is idle
    until it has sent the head of a request.
    """

    def __init__(self, max_connections: int, num_reserved: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.max_connections = max_connections
        self._max_open = max_connections + num_reserved
        self._clock = clock
        self._open: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # the first has been idle for longest
        self._num_closed = 0
        self._next_log = 0.0

    def add(self, connection: Connection) -> bool:
        """Add a new connection. Return whether there is room for it."""
        if len(self._open) >= self._max_open:
            self._note_closed()
            oldest = next(iter(self._idle), None)
            if oldest is None:
                return False
            self.remove(oldest)
            oldest.close_idle()
        self._open.add(connection)
        self._idle[connection] = None
        return True

    def set_idle(self, connection: Connection, *, is_idle: bool) -> None:
        """Note that a connection waits for a request, or works on one."""
        self._idle.pop(connection, None)
        if is_idle and connection in self._open:
            self._idle[connection] = None

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    @property
    def is_full(self) -> bool:
        """Whether as many connections as may have a request in progress."""
        return len(self._open) - len(self._idle) >= self.max_connections

    def _note_closed(self) -> None:
        """Log that a connection is closed because file descriptors ran out, at most once in five seconds."""
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
