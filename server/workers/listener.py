"""Protocol of what receives the results of an engine worker."""

from collections.abc import Sequence
from typing import Protocol

from server.interface.request import Completion, Request


class EngineListener(Protocol):
    """Is told what comes of the requests. Called from any thread."""

    def progressed(self, progress: Sequence[tuple[Request, list[int]]]) -> None:
        """So much of the answers of these, which stream, is final; they go on."""
        ...

    def ended(self, completions: Sequence[Completion]) -> None:
        """These have left the engine."""
        ...

    def lost(self, requests: Sequence[Request], why: str) -> None:
        """The engine has died with these; nothing is left of them there."""
        ...
