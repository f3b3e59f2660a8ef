"""Keeps the tests off the network: an audit hook that refuses to reach anything but this machine's loopback."""

import ipaddress
import socket
import sys

_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_NAMES = frozenset({"", "localhost", "ip6-localhost"})
_installed = False


class NetworkBlocked(RuntimeError):
    """A test tried to reach another machine. No `OSError`: no library shall take it for a bad line and try again."""


def block_the_network() -> None:
    """Refuses connections, datagrams and name look-ups beyond loopback for the rest of this process.

    Unix sockets stay open. The hook sits below `socket.socket`, so libraries that keep their own reference to the
    class are caught as well. Python cannot remove an audit hook; calling this again changes nothing.
    """
    global _installed  # the interpreter has one list of hooks, so has this module one flag
    if not _installed:
        sys.addaudithook(_refuse)
        _installed = True


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in _EVENTS:
        sender, address = arguments[0], arguments[1]
        if not isinstance(sender, socket.SocketType) or sender.family not in (socket.AF_INET, socket.AF_INET6):
            return
        if isinstance(address, tuple) and not _is_here(address[0]):
            raise NetworkBlocked(f"{event} to {address[0]}: tests reach this machine only")
    elif event == "socket.getaddrinfo" and not _is_here(arguments[0]):
        raise NetworkBlocked(f"look-up of {arguments[0]!r}: tests reach this machine only")


def _is_here(host: object) -> bool:
    name = host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else host
    if name is None or name in _NAMES:
        return True
    try:
        # The unspecified address means this machine, whether bound or connected to.
        return (address := ipaddress.ip_address(str(name))).is_loopback or address.is_unspecified
    except ValueError:
        return False
