"""Requests to a server that drops them, in a process of its own: sending needs gevent, which no test may import."""

import math
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from loadtest.results.records import Outcome
from loadtest.sending import connections as kept
from loadtest.sending.addresses import Address, address_of
from loadtest.sending.connections import Connections
from loadtest.sending.exchange import Place, perform, prepared
from loadtest.workload.requests import TextRequest

REQUEST = TextRequest(0, "sentence", "native", ("Hello.",), None, "en", "de", None, 1)
PLACE = Place("stage", 0)
BODY = b'{"translations": [{"text": "A", "source_tokens": 1, "target_tokens": 1}]}'


def _serve(listener: socket.socket, drops_after_seconds: float | None) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            if not connection.recv(65536):
                continue
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY))
            if drops_after_seconds is not None:
                connection.recv(65536)
                time.sleep(drops_after_seconds)


@contextmanager
def forgetful(drops_after_seconds: float | None) -> Iterator[Address]:
    """A server that answers the first request of a connection and drops the second; None: without reading it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, drops_after_seconds))
        thread.start()
        yield address_of(f"http://127.0.0.1:{listener.getsockname()[1]}")
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def read_and_dropped() -> None:
    """The request failed."""
    with forgetful(drops_after_seconds=0.2) as address:
        connections = Connections(address)
        what = prepared(REQUEST, address)
        first, _ = perform(what, None, PLACE, connections, time.perf_counter)
        dropped, answer = perform(what, None, PLACE, connections, time.perf_counter)
        connections.close()
    assert first.outcome is Outcome.ANSWERED
    assert (dropped.outcome, dropped.reason) == (Outcome.FAILED, "no answer: HTTPConnectionClosed")
    assert answer is None
    assert not dropped.is_resent


def crossed_the_close_of_an_idle_connection() -> None:
    """The request is sent again and marked in its record."""
    # The close arrives between checking the connection and sending.
    kept._is_open = lambda connection: connection.settimeout(None) is None
    with forgetful(drops_after_seconds=None) as address:
        connections = Connections(address)
        what = prepared(REQUEST, address)
        instants = iter([0.0, 0.001, 0.1, 1.0, 1.001, 1.0015, 1.2])
        perform(what, 0.0, PLACE, connections, lambda: next(instants))
        time.sleep(0.05)  # until the close has arrived
        record, answer = perform(what, 1.0, PLACE, connections, lambda: next(instants))
        connections.close()
    assert record.outcome is Outcome.ANSWERED
    assert answer is not None
    assert record.is_resent
    assert math.isclose(record.lag, 0.001, abs_tol=1e-9)  # of the first sending
    assert record.finished == 1.2


if __name__ == "__main__":
    {each.__name__: each for each in (read_and_dropped, crossed_the_close_of_an_idle_connection)}[sys.argv[1]]()
