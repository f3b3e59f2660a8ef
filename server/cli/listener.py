"""Acceptance of connections: several in an iteration of the event loop, and in the table before their TLS handshake."""

import asyncio
import contextlib
import socket
import ssl

import uvicorn

from server.http.connection_table import ConnectionTable

_MAX_ACCEPTED = 64  # in an iteration of the event loop
_PAUSE_SECONDS = 0.1  # without descriptors for more connections


def connection_of(server: uvicorn.Server) -> asyncio.Protocol:
    """Return a new connection of a server."""
    connection: asyncio.Protocol = server.config.http_protocol_class(  # type: ignore[call-arg]
        config=server.config, server_state=server.server_state, app_state=server.lifespan.state
    )
    return connection


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
        connection = connection_of(self._server)
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


class Listener:
    """Accepts the connections of a listening socket.

    uvicorn takes it for an `asyncio.Server`. uvloop's accepts one connection in each iteration of the event loop, so
    that a client waits behind all requests of hundreds that connect before it. With TLS, it reports a connection after
    its handshake, so that as many unfinished handshakes as there are descriptors shut out all clients.
    """

    def __init__(
        self,
        listening: socket.socket,
        server: uvicorn.Server,
        table: ConnectionTable,
        context: ssl.SSLContext | None,
        handshake_seconds: float,
    ) -> None:
        """Listen for `server`, whose connections are in `table`, with TLS if there is a context."""
        self._listening = listening
        self._server = server
        self._table = table
        self._context = context
        self._handshake_seconds = None if context is None else handshake_seconds
        # Older connections are closed in the next iteration.
        self._max_accepted = min(table.num_reserved // 2, _MAX_ACCEPTED)
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        listening.setblocking(False)
        listening.listen(table.num_reserved)
        self._resume()

    def close(self) -> None:
        """Stop accepting connections."""
        self._is_closed = True
        self._loop.remove_reader(self._listening)

    async def wait_closed(self) -> None:
        """Wait until no handshake is in progress."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _resume(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(self._max_accepted):
            try:
                accepted, _address = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:  # no descriptors
                self._table.note_closed()
                self._loop.remove_reader(self._listening)
                self._loop.call_later(_PAUSE_SECONDS, self._resume)
                return
            accepted.setblocking(False)
            try:
                protocol = self._protocol(accepted)
            except ConnectionRefusedError:
                accepted.close()
                continue
            task = self._loop.create_task(self._connect(accepted, protocol))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _protocol(self, accepted: socket.socket) -> asyncio.Protocol:
        if self._context is None:
            return connection_of(self._server)
        return TlsHandshake(accepted, self._table, self._server)

    async def _connect(self, accepted: socket.socket, protocol: asyncio.Protocol) -> None:
        with contextlib.suppress(OSError):  # a failed handshake, or one that takes too long
            await self._loop.connect_accepted_socket(
                lambda: protocol, accepted, ssl=self._context, ssl_handshake_timeout=self._handshake_seconds
            )
        if isinstance(protocol, TlsHandshake):
            protocol.leave()
