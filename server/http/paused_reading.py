"""Clients that leave while nothing is read from their connections."""

import asyncio
import contextlib
import select

from uvicorn.protocols.http.flow_control import FlowControl


class DisconnectWatch:
    """Closes paused connections whose clients have left. Used by the event loop's thread only.

    The event loop does not poll a transport whose reading is paused, so that the end of its connection would be noticed
    after the response only. A second epoll object reports it, also behind data that is not read.
    """

    def __init__(self) -> None:
        self._epoll: select.epoll | None = None  # from the first pause on
        self._transports: dict[int, asyncio.Transport] = {}  # by descriptor

    def add(self, transport: asyncio.Transport) -> int:
        """Watch a connection. Return its descriptor."""
        if self._epoll is None:
            self._epoll = select.epoll()
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._close_ended)
        descriptor: int = transport.get_extra_info("socket").fileno()
        self._epoll.register(descriptor, select.EPOLLRDHUP)
        self._transports[descriptor] = transport
        return descriptor

    def remove(self, descriptor: int, transport: asyncio.Transport) -> None:
        """Watch a connection no longer. Its descriptor may be closed, and belong to another one."""
        if self._transports.get(descriptor) is transport and self._epoll is not None:
            del self._transports[descriptor]
            with contextlib.suppress(OSError):
                self._epoll.unregister(descriptor)

    def _close_ended(self) -> None:
        assert self._epoll is not None
        for descriptor, _ in self._epoll.poll(0):
            transport = self._transports[descriptor]
            self.remove(descriptor, transport)
            transport.close()  # as uvicorn does when it reads the end


class WatchedFlow(FlowControl):
    """uvicorn's flow control of a connection, which is watched while its reading is paused."""

    _descriptor = -1

    def __init__(self, transport: asyncio.Transport, watch: DisconnectWatch) -> None:
        super().__init__(transport)
        self._watch = watch

    def pause_reading(self) -> None:
        """Read no more from the connection."""
        if not self.read_paused and not self._transport.is_closing():
            self._descriptor = self._watch.add(self._transport)
        super().pause_reading()

    def resume_reading(self) -> None:
        """Read from the connection again."""
        if self.read_paused:
            self._watch.remove(self._descriptor, self._transport)
        super().resume_reading()
