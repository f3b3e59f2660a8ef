import socket
from pathlib import Path

import pytest

from server.cli.listening import address_of, bound_sockets, bound_unix_socket


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


def test_a_unix_socket_is_for_owner_and_group_and_has_its_path_as_address(tmp_path: Path) -> None:
    path = tmp_path / "kvasir.sock"
    with bound_unix_socket(path) as bound:
        assert path.stat().st_mode & 0o777 == 0o660
        assert address_of(bound) == f"unix:{path}"


def test_a_socket_left_by_a_killed_server_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "kvasir.sock"
    bound_unix_socket(path).close()
    assert path.is_socket()
    bound_unix_socket(path).close()


def test_a_unix_socket_in_use_is_an_error_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "kvasir.sock"
    with bound_unix_socket(path) as bound:
        bound.listen()
        with pytest.raises(OSError, match=r"another server listens on .*; set another path with --unix-socket"):
            bound_unix_socket(path)
    assert path.is_socket()


@pytest.mark.parametrize("name", ["file", "missing/kvasir.sock"])
def test_a_path_that_cannot_be_a_socket_is_an_error_with_a_hint(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot listen on .*; set another path with --unix-socket"):
        bound_unix_socket(tmp_path / name)
    assert (tmp_path / "file").is_file()


def test_an_address_with_tls_is_https(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        assert address_of(bound, has_tls=True).startswith("https://127.0.0.1:")
