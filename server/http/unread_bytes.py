"""Memory limit for large responses, and for other large parts of requests."""

from collections.abc import Iterator
from contextlib import contextmanager

from server.interface.errors import QueueFull

_CLIENT_SHARE = 4  # one client may use a quarter of the limit
_RETRY_SECONDS = 10.0


class UnreadBytes:
    """Bytes of large responses, in all and by client address. Used by the event loop's thread only.

    `described` names other objects than responses in messages, such as the glossaries of running requests.
    """

    def __init__(self, max_bytes: int, described: str = "") -> None:
        self._max_bytes = max_bytes
        self._described = described
        self._by_client: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Bytes of all clients."""
        return sum(self._by_client.values())

    def check(self, client: str, num_bytes: int = 1) -> None:
        """Raise `QueueFull` if `num_bytes` more exceed a limit.

        The first response of a client may be larger than its share, and the only response of all than the limit.
        """
        own, total = self._by_client.get(client, 0), self.total
        if own and own + num_bytes > self._max_bytes // _CLIENT_SHARE:
            raise QueueFull(self._message(own, "this client", "read them first"), _RETRY_SECONDS)
        if total and total + num_bytes > self._max_bytes:
            raise QueueFull(self._message(total, "all clients", "retry later"), _RETRY_SECONDS)

    def _message(self, num_bytes: int, whose: str, advice: str) -> str:
        if self._described:
            limit = self._max_bytes // (_CLIENT_SHARE if whose == "this client" else 1)
            return f"{num_bytes} of {limit} bytes are taken by {self._described} of {whose}; retry later"
        return f"{num_bytes} bytes of responses to {whose} are unread; {advice}"

    def add(self, client: str, num_bytes: int) -> None:
        """Count bytes. Raises `QueueFull` if they exceed a limit."""
        self.check(client, num_bytes)
        self._by_client[client] = self._by_client.get(client, 0) + num_bytes

    def remove(self, client: str, num_bytes: int) -> None:
        """Stop counting bytes that were added."""
        self._by_client[client] -= num_bytes
        if not self._by_client[client]:
            del self._by_client[client]

    @contextmanager
    def holding(self, client: str, num_bytes: int) -> Iterator[None]:
        """Count bytes within a block. Raises `QueueFull` if they exceed a limit."""
        self.add(client, num_bytes)
        try:
            yield
        finally:
            self.remove(client, num_bytes)
