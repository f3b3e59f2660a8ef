"""Sockets of the server, bound before models load."""

import contextlib
import errno
import socket
from pathlib import Path


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Return sockets bound to every address of `host`. They do not listen yet, so that clients are not kept waiting.

    Raises OSError, with a hint, if the host is unknown or the port is in use.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise OSError(f"cannot listen on {host}: {error.strerror}; set another address with --host") from error
    sockets: list[socket.socket] = []
    for family, type_, protocol, _, address in dict.fromkeys(found):
        with contextlib.ExitStack() as undo:
            bound = undo.enter_context(socket.socket(family, type_, protocol))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # With port 0 the first address chooses the port of all.
            chosen = sockets[0].getsockname()[1] if sockets else port
            try:
                bound.bind((address[0], chosen, *address[2:]))
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL and len(found) > 1:
                    continue  # localhost is also ::1, which a machine without IPv6 has not
                for other in sockets:
                    other.close()
                raise _unusable(host, port, error) from error
            undo.pop_all()
            sockets.append(bound)
    if not sockets:
        raise OSError(f"cannot listen on {host}: no address of it belongs to this machine; set another with --host")
    return sockets


def bound_unix_socket(path: Path) -> socket.socket:
    """Return a socket bound to `path`, for the owner and the group of its folder. It does not listen yet.

    Replaces a socket that a killed server left. Raises OSError if the path is in use or cannot be used.
    """
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                if probe.connect_ex(str(path)) == 0:
                    raise OSError(f"another server listens on {path}; set another path with --unix-socket")
            path.unlink()
        bound.bind(str(path))
        path.chmod(0o660)
    except OSError as error:
        bound.close()
        if error.errno is None:
            raise
        raise OSError(f"cannot listen on {path}: {error.strerror}; set another path with --unix-socket") from error
    return bound


def address_of(listening: socket.SocketType, *, has_tls: bool = False) -> str:
    """Return the URL under which a browser on this machine reaches the socket; `unix:PATH` for a Unix socket."""
    if listening.family == socket.AF_UNIX:
        return f"unix:{listening.getsockname()}"
    scheme = "https" if has_tls else "http"
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _unusable(host: str, port: int, error: OSError) -> OSError:
    hint = "set another address with --host" if error.errno == errno.EADDRNOTAVAIL else "set another with --port"
    return OSError(f"cannot listen on {host}, port {port}: {error.strerror}; {hint}")
