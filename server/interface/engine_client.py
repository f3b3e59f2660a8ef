"""The engine as the rest of the server sees it: requests in, completions out, and its status."""

from collections.abc import Sequence
from typing import Literal, Protocol

from bundle.loading import Bundle
from server.interface.request import Completion, Request

# Source of a translation: the engine, the cache, or the completion of an equal request in flight.
SentenceOutcome = Literal["decoded", "cached", "coalesced"]


class EngineStatus(Protocol):
    """Load and health of an engine, summed over its replicas."""

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        ...

    @property
    def running(self) -> int:
        """Requests that have rows."""
        ...

    @property
    def unfinished(self) -> int:
        """Requests accepted and not completed. The rest of a long call is not in the queue yet."""
        ...

    @property
    def rows_in_use(self) -> int:
        """Rows assigned to requests."""
        ...

    @property
    def rows(self) -> int:
        """Rows of all replicas."""
        ...

    @property
    def heartbeat_age_seconds(self) -> float:
        """Longest time since the last heartbeat of a replica that has work."""
        ...

    @property
    def draining(self) -> bool:
        """Whether new requests are rejected because the server stops."""
        ...

    @property
    def has_engine(self) -> bool:
        """Whether a replica can decode now: it runs, and reports while it has work."""
        ...


class EngineClient(Protocol):
    """An engine behind an asyncio interface, such as `server.workers.pool.EnginePool`."""

    @property
    def bundle(self) -> Bundle:
        """The bundle that the engine runs."""
        ...

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return completions in the order of the requests. Cancelling the awaiting task cancels the requests.

        Raises `QueueFull` (and then accepts none of them), `Draining` or `EngineFailed`.
        """
        ...

    def check_admission(self) -> None:
        """Raise `QueueFull` if any request would be rejected now."""
        ...

    def status(self) -> EngineStatus:
        """Return the current status."""
        ...

    async def drain(self, timeout_seconds: float) -> bool:
        """Reject new requests and finish the running ones. Return whether all finished in time."""
        ...

    def close(self) -> None:
        """Stop the workers and free their memory."""
        ...
