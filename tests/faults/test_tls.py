"""Odd TLS clients: each costs its own connection only."""

import contextlib
import select
import ssl
import time
from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started
from tests.faults.raw_requests import CERTIFICATE, open_socket, read_all

_HANDSHAKE_SECONDS = 2


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    flags = ("--threads", "1", "--header-timeout-seconds", str(_HANDSHAKE_SECONDS))
    yield from started(*flags, "--tls-certificate", str(CERTIFICATE))


def _first_bytes() -> bytes:
    """Return the first message of a client."""
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="a." * 126 + "aa").do_handshake()
    return outgoing.read()


def test_a_handshake_of_a_byte_at_a_time_ends_like_a_slow_request(served: Served) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS / 2
    with open_socket(served) as slow:
        for byte in _first_bytes():
            with contextlib.suppress(ConnectionError):
                slow.sendall(bytes([byte]))
            if select.select([slow], [], [], 0.1)[0]:
                break
            assert time.monotonic() < give_up
        assert read_all(slow) == b""
