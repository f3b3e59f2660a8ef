"""Acceptance of TLS connections, which are in the table of connections before their handshake is complete."""

import asyncio
import contextlib
import socket
import ssl

import uvicorn

from server.http.connection_table import ConnectionTable

_ACCEPTED_AT_ONCE = 8  # in an iteration of the event loop, which also closes those in whose place they are
_PAUSE_SECONDS = 0.1  # without descriptors for more connections


class TlsHandshake(asyncio.Protocol):
    """A connection until its TLS handshake is complete, idle in the table. Then one of uvicorn's takes its place.

    It is in uvicorn's set of connections, so that a shutdown waits for it and ends it.
    """

    def __init__(self, accepted: socket.socket, table: ConnectionTable, server: uvicorn.Server) -> None:
        """Enter the connection. Raises ConnectionRefusedError if the table has no place for it."""
        is_accepted, _ = table.add(self)
        if not is_accepted:
            raise ConnectionRefusedError
        table.set_idle(self, is_idle=True)
        self._accepted = accepted
        self._table = table
        self._server = server
        self._connections: set[object] = server.server_state.connections  # type: ignore[assignment]
        self._connections.add(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass the connection on; its handshake is complete."""
        self.leave()
        config = self._server.config
        connection: asyncio.Protocol = config.http_protocol_class(  # type: ignore[call-arg]
            config=config, server_state=self._server.server_state, app_state=self._server.lifespan.state
        )
        transport.set_protocol(connection)
        connection.connection_made(transport)

    def leave(self) -> None:
        """Make room for another connection."""
        self._table.remove(self)
        self._connections.discard(self)

    def close_idle(self) -> None:
        """End the handshake."""
        with contextlib.suppress(OSError):  # the client has closed the connection
            self._accepted.shutdown(socket.SHUT_RDWR)

    shutdown = close_idle  # for uvicorn


class TlsListener:
    """Accepts the connections of a listening socket and begins their TLS handshakes.

    `asyncio.Server`, for which uvicorn takes it, reports a connection after its handshake, so that as many unfinished
    handshakes as there are descriptors would shut out all clients.
    """

    def __init__(
        self,
        listening: socket.socket,
        context: ssl.SSLContext,
        handshake_seconds: float,
        table: ConnectionTable,
        server: uvicorn.Server,
    ) -> None:
        """Listen for `server`, whose connections are in `table`. Handshakes end after `handshake_seconds`."""
        self._listening = listening
        self._context = context
        self._handshake_seconds = handshake_seconds
        self._table = table
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        listening.setblocking(False)
        listening.listen(table.num_reserved)
        self._accept_more()

    def close(self) -> None:
        """Stop accepting connections."""
        self._is_closed = True
        self._loop.remove_reader(self._listening)

    async def wait_closed(self) -> None:
        """Wait until no handshake is in progress."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accept_more(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, _address = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:  # no descriptors
                self._table.note_closed()
                self._loop.remove_reader(self._listening)
                self._loop.call_later(_PAUSE_SECONDS, self._accept_more)
                return
            try:
                handshake = TlsHandshake(accepted, self._table, self._server)
            except ConnectionRefusedError:
                accepted.close()
                continue
            accepted.setblocking(False)
            task = self._loop.create_task(self._shake_hands(handshake, accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _shake_hands(self, handshake: TlsHandshake, accepted: socket.socket) -> None:
        with contextlib.suppress(OSError):  # a failed handshake, or one that takes too long
            await self._loop.connect_accepted_socket(
                lambda: handshake, accepted, ssl=self._context, ssl_handshake_timeout=self._handshake_seconds
            )
        handshake.leave()
