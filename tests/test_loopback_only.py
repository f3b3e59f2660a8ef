import socket

import pytest

from tests.loopback_only import NetworkBlocked

# Addresses set aside for documentation (RFC 5737, RFC 3849): without the guard, no host would be reached.
ELSEWHERE = ("192.0.2.1", 80)


def test_a_connection_to_another_machine_is_refused() -> None:
    with socket.socket() as client, pytest.raises(NetworkBlocked, match=r"192\.0\.2\.1"):
        client.connect(ELSEWHERE)


def test_a_name_is_not_looked_up() -> None:
    with pytest.raises(NetworkBlocked, match=r"example\.org"):
        socket.create_connection(("example.org", 80))


def test_loopback_and_localhost_are_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for host in ("127.0.0.1", "localhost"):
            socket.create_connection((host, port)).close()
