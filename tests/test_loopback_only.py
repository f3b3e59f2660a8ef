import asyncio
import contextlib
import socket
from pathlib import Path

import pytest

from tests.loopback_only import NetworkBlocked

# Addresses set aside for documentation (RFC 5737, RFC 3849): without the guard, no host would be reached.
ELSEWHERE = ("192.0.2.1", 80)
ELSEWHERE_6 = ("2001:db8::1", 80)


def test_a_connection_to_another_machine_is_refused() -> None:
    with socket.socket() as client, pytest.raises(NetworkBlocked, match=r"192\.0\.2\.1"):
        client.connect(ELSEWHERE)


def test_a_connection_that_reports_errors_as_numbers_is_refused_too() -> None:
    with socket.socket() as client, pytest.raises(NetworkBlocked):
        client.connect_ex(ELSEWHERE)


def test_a_connection_over_ipv6_is_refused() -> None:
    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(socket.socket(socket.AF_INET6))
        except OSError:
            pytest.skip("this kernel has no IPv6")
        with pytest.raises(NetworkBlocked):
            client.connect(ELSEWHERE_6)


def test_a_datagram_to_another_machine_is_refused() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client, pytest.raises(NetworkBlocked):
        client.sendto(b"hello", ELSEWHERE)


def test_a_name_is_not_looked_up() -> None:
    with pytest.raises(NetworkBlocked, match=r"example\.org"):
        socket.create_connection(("example.org", 80))


def test_asyncio_is_refused_as_well() -> None:
    with pytest.raises(NetworkBlocked):
        asyncio.run(_open(ELSEWHERE))


def test_loopback_and_localhost_are_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            socket.create_connection((host, port)).close()


def test_a_unix_socket_is_reached(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)


async def _open(address: tuple[str, int]) -> None:
    await asyncio.open_connection(*address)
