"""A pool of connections to the server, as many as there are requests in flight: no request waits for a free one.

Needs a process patched by gevent, in which a waiting socket lets other greenlets run.
"""

import ssl
import time

import gevent.socket
import gevent.ssl
from geventhttpclient.response import HTTPSocketResponse

from loadtest.sending.addresses import Address

CONNECT_SECONDS = 10.0
NO_CONNECTION = "no connection"  # begins the reason of a record without a connection
_BLOCK_BYTES = 16384


class CannotConnect(OSError):
    """The server accepts no connection; the message contains the kind of error."""


class Connections:
    """Connections to one server. `take` one, send and read, then `give_back` it if it is reusable."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[gevent.socket.socket] = []
        self._tls = ssl.create_default_context() if address.scheme == "https" else None
        self._family, self._peer = _reachable(address)
        self._round_trip: float | None = None

    @property
    def round_trip_seconds(self) -> float:
        """Quickest round trip so far, in seconds; 0 before the first connection."""
        return self._round_trip or 0.0

    def take(self) -> tuple[gevent.socket.socket, bool]:
        """Return a connection, and whether it was used before. Raises the errors of `connect`."""
        while self._idle:
            connection = self._idle.pop()  # the most recently used; the server may close older ones
            if self._tls or _is_open(connection):
                return connection, True
            connection.close()
        return self.connect(), False

    def connect(self) -> gevent.socket.socket:
        """Return a new connection. Raises `CannotConnect`, or another `OSError` at a limit of this process."""
        connection = gevent.socket.socket(self._family)
        try:
            connection.settimeout(CONNECT_SECONDS)
            begun = time.perf_counter()
            connection.connect(self._peer)
            took = time.perf_counter() - begun  # one packet in each direction
            self._round_trip = took if self._round_trip is None else min(took, self._round_trip)
            connection.setsockopt(gevent.socket.IPPROTO_TCP, gevent.socket.TCP_NODELAY, 1)
            connection.settimeout(None)  # requests have their own limit
            if self._tls:
                return gevent.ssl.SSLContext.wrap_socket(self._tls, connection, server_hostname=self._address.host)
        except OSError as error:
            connection.close()
            raise CannotConnect(f"{NO_CONNECTION}: {type(error).__name__}") from error
        except BaseException:
            connection.close()
            raise
        return connection

    def give_back(self, connection: gevent.socket.socket, response: HTTPSocketResponse) -> None:
        """Keep the connection for the next request if the response is complete and allows it."""
        if response.message_complete and not response.should_close():
            self._idle.append(connection)

    def close(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()


def read_head(connection: gevent.socket.socket) -> HTTPSocketResponse:
    """Return the response after its headers. It closes the connection if it is released before its end."""
    return HTTPSocketResponse(connection, block_size=_BLOCK_BYTES, method="POST")


def _reachable(address: Address) -> tuple[int, tuple[str, int]]:
    """Return the host's first address that accepts a connection, else its first. Called once, not for each request."""
    found = gevent.socket.getaddrinfo(address.host, address.port, 0, gevent.socket.SOCK_STREAM)
    for family, _, _, _, peer in found:
        with gevent.socket.socket(family) as probe:
            probe.settimeout(CONNECT_SECONDS)
            if probe.connect_ex(peer) == 0:
                return family, peer
    return found[0][0], found[0][4]


def _is_open(connection: gevent.socket.socket) -> bool:
    """Return whether the connection is open and idle: there is nothing to read, not even the end."""
    connection.settimeout(0.0)
    try:
        connection.recv(1, gevent.socket.MSG_PEEK)
    except BlockingIOError:
        connection.settimeout(None)
        return True
    except OSError:
        return False
    return False
