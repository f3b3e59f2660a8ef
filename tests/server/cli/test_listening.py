import socket

import pytest

from server.cli.listening import address_of, bound_sockets


def test_port_0_gives_every_address_of_a_host_the_same_port() -> None:
    sockets = bound_sockets("localhost", 0)
    try:
        assert len({each.getsockname()[1] for each in sockets}) == 1
        assert address_of(sockets[0]).startswith("http://")
    finally:
        for each in sockets:
            each.close()


def test_a_port_in_use_is_an_error_with_a_hint() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match=r"in use; set another with --port"),
    ):
        bound_sockets("127.0.0.1", taken.getsockname()[1])
