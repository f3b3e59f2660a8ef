"""Protocol of what receives the results of an engine worker."""

from collections.abc import Sequence
from typing import Protocol

from server.engine.stream_tracker import StreamUpdate
from server.interface.request import Completion, Request


class EngineListener(Protocol):
    """Receiver of the results of an engine worker. Workers call it from any thread."""

    def progressed(self, updates: Sequence[StreamUpdate]) -> None:
        """Receive newly final tokens of streaming requests that continue."""
        ...

    def ended(self, completions: Sequence[Completion]) -> None:
        """Receive completions of requests that left the engine."""
        ...

    def lost(self, requests: Sequence[Request], why: str) -> None:
        """Receive the requests of an engine that died, and the reason."""
        ...

    def not_restarted(self) -> None:
        """Note that an engine that died could not be started again."""
        ...
