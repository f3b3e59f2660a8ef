"""Network addresses in settings."""

import ipaddress
from typing import Final

UNIX_CLIENT: Final = "unix"  # a client of the Unix socket, which has no address


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_network(address: str) -> bool:
    """Return whether a text is an IP address or a network, such as 10.0.0.0/8."""
    try:
        ipaddress.ip_network(address)
    except ValueError:
        return False
    return True
