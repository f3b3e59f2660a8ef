"""Kept connections to the server, as many as there are requests on the way: none ever waits for a free one.

Works in a process that gevent has patched, where a socket that waits lets others go on.
"""

import ssl
import time

import gevent.socket
import gevent.ssl
from geventhttpclient.response import HTTPSocketResponse

from loadtest.sending.addresses import Address

CONNECT_SECONDS = 10.0
NO_CONNECTION = "no connection"  # how the reason of a record begins for want of one
_BLOCK_BYTES = 16384


class CannotConnect(OSError):
    """The server takes no connection; the message says so, with the kind of error."""


class Connections:
    """Connections to one server. `take` one, send and read, and `give_back` what is still good."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[gevent.socket.socket] = []
        self._tls = ssl.create_default_context() if address.scheme == "https" else None
        self._family, self._peer = _reachable(address)
        self._round_trip: float | None = None

    @property
    def round_trip_seconds(self) -> float:
        """To the server and back, at the quickest so far; 0 before the first connection."""
        return self._round_trip or 0.0

    def take(self) -> tuple[gevent.socket.socket, bool]:
        """A connection, and whether it has been used before. Raises as `connect` does."""
        while self._idle:
            connection = self._idle.pop()  # the last one given back: the others may grow old and be closed
            if self._tls or _is_open(connection):
                return connection, True
            connection.close()
        return self.connect(), False

    def connect(self) -> gevent.socket.socket:
        """A new connection. Raises `CannotConnect`, or another `OSError` if this process may have no more of them."""
        connection = gevent.socket.socket(self._family)
        try:
            connection.settimeout(CONNECT_SECONDS)
            begun = time.perf_counter()
            connection.connect(self._peer)
            took = time.perf_counter() - begun  # a packet there and one back
            self._round_trip = took if self._round_trip is None else min(took, self._round_trip)
            connection.setsockopt(gevent.socket.IPPROTO_TCP, gevent.socket.TCP_NODELAY, 1)
            connection.settimeout(None)  # requests have a limit of their own
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
        """Keeps the connection for the next request, if the response was read to its end and allows it."""
        if response.message_complete and not response.should_close():
            self._idle.append(connection)

    def close(self) -> None:
        """Closes what nobody uses."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()


def read_head(connection: gevent.socket.socket) -> HTTPSocketResponse:
    """The answer as soon as its headers are there; it closes the connection if it is given up before its end."""
    return HTTPSocketResponse(connection, block_size=_BLOCK_BYTES, method="POST")


def _reachable(address: Address) -> tuple[int, tuple[str, int]]:
    """The first of the host's addresses that takes a connection; else the first. Asked once, not for each request."""
    found = gevent.socket.getaddrinfo(address.host, address.port, 0, gevent.socket.SOCK_STREAM)
    for family, _, _, _, peer in found:
        with gevent.socket.socket(family) as probe:
            probe.settimeout(CONNECT_SECONDS)
            if probe.connect_ex(peer) == 0:
                return family, peer
    return found[0][0], found[0][4]


def _is_open(connection: gevent.socket.socket) -> bool:
    """Whether the server has not closed it: there is nothing to read, not even the end."""
    connection.settimeout(0.0)
    try:
        connection.recv(1, gevent.socket.MSG_PEEK)
    except BlockingIOError:
        connection.settimeout(None)
        return True
    except OSError:
        return False
    return False
