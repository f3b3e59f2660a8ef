"""The listener for administration, beside the server's own."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator

import uvicorn

from server.cli.listening import address_of, bound_sockets, bound_unix_socket
from server.http.admin.app import create_admin_app
from server.http.state import ServerState
from server.operations.api_keys.key_gate import KeyGate
from server.operations.settings import Settings

_log = logging.getLogger("kvasir")


def bound_admin_socket(settings: Settings, stack: contextlib.ExitStack) -> socket.socket | None:
    """Return the socket for administration, closed with the stack, or None."""
    if settings.admin_socket is not None:
        bound = bound_unix_socket(settings.admin_socket)
        settings.admin_socket.chmod(0o600)  # without keys, the owner of the socket is the administrator
        stack.callback(settings.admin_socket.unlink, missing_ok=True)
    elif settings.admin_port is not None:
        bound, *others = bound_sockets(settings.admin_host, settings.admin_port)
        for other in others:
            other.close()
    else:
        return None
    return stack.enter_context(bound)


class AdminServer:
    """Serves administration on a socket of its own, in the event loop of the server."""

    def __init__(self, state: ServerState, listening: socket.socket, http: type[asyncio.Protocol]) -> None:
        """`http` is the class of its connections. Raises ValueError if the file of keys is unusable."""
        keys = state.settings.admin_keys
        self._gate = None if keys is None else KeyGate(keys)
        self._socket = listening
        config = uvicorn.Config(
            create_admin_app(state, self._gate),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=http,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = _QuietServer(config)
        self._serving: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None  # of the file of keys

    async def start(self) -> None:
        """Start to listen."""
        self._socket.listen()  # uvicorn does later, in its task: the log line would be too early
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        if self._gate is not None:
            self._reading = asyncio.create_task(self._gate.run())
        _log.info("listening for administration", extra={"url": address_of(self._socket)})

    async def stop(self) -> None:
        """End connections, and close the file of keys."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
        if self._reading is not None:
            self._reading.cancel()
        if self._gate is not None:
            await asyncio.to_thread(self._gate.close)


class _QuietServer(uvicorn.Server):
    """uvicorn's server without signal handlers, which the main server has."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the main server."""
        yield
