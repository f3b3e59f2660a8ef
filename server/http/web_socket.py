"""A connection that becomes a WebSocket."""

from collections.abc import Callable

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, which takes the place of a connection in its table."""

    on_lost: Callable[[], None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the place."""
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()
