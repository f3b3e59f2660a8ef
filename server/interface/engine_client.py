"""What the translator sees of the engine: sentences in, completions out, and a few numbers about its state."""

from collections.abc import Sequence
from typing import Literal, Protocol

from bundle.loading import Bundle
from server.interface.request import Completion, Request

# Where an answer came from: the engine, the cache, or the engine's answer to another request in flight.
SentenceOutcome = Literal["decoded", "cached", "coalesced"]


class EngineStatus(Protocol):
    """How an engine is doing, all its replicas together."""

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        ...

    @property
    def running(self) -> int:
        """Requests that have rows."""
        ...

    @property
    def rows_in_use(self) -> int:
        """Rows that belong to a request."""
        ...

    @property
    def rows(self) -> int:
        """Rows there are."""
        ...

    @property
    def heartbeat_age_seconds(self) -> float:
        """Since when the engine that has been silent longest is silent; one without work is not."""
        ...

    @property
    def draining(self) -> bool:
        """Whether new requests are refused."""
        ...


class EngineClient(Protocol):
    """An engine behind an asyncio face; `server.workers.engine_pool.EnginePool` is the one that serves."""

    @property
    def bundle(self) -> Bundle:
        """The model it runs."""
        ...

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests; cancelling the awaiting task cancels them.

        Raises `QueueFull` (none was taken), `Draining` or `EngineFailed`.
        """
        ...

    def check_admission(self) -> None:
        """Raise `QueueFull` where it would refuse whatever is asked of it now, without looking at any of it."""
        ...

    def status(self) -> EngineStatus:
        """How it is doing now."""
        ...

    async def drain(self, timeout_seconds: float) -> bool:
        """Refuse what is new and finish what runs; whether all of it finished in time."""
        ...

    def close(self) -> None:
        """Stop the threads and free the memory."""
        ...
