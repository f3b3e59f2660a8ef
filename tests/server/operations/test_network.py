import pytest

from server.operations.settings import is_loopback, is_network


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("::", False),
        ("example.org", False),
        ("a.localhost", False),
    ],
)
def test_addresses_that_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [("10.0.0.1", True), ("10.0.0.0/8", True), ("fe80::/10", True), ("10.0.0.1/8", False), ("proxy", False)],
)
def test_addresses_of_networks(address: str, expected: bool) -> None:
    assert is_network(address) is expected
