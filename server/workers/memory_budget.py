"""Memory limit of all loaded models together."""

import asyncio

from server.interface.errors import QueueFull
from server.workers.on_demand_engine import OnDemandEngine

_MEGABYTE = 1_000_000
_RETRY_SECONDS = 5.0  # a model in use is rarely idle before


class MemoryBudget:
    """Unloads idle models, the least recently used first, when another one needs their memory."""

    def __init__(self, max_bytes: int | None) -> None:
        """`max_bytes` None is no limit."""
        self._max_bytes = max_bytes
        self._engines: list[OnDemandEngine] = []
        self._lock = asyncio.Lock()

    @property
    def used_bytes(self) -> int:
        """Memory of the models that are loaded or being loaded."""
        return sum(engine.occupied_bytes for engine in self._engines)

    def add(self, engine: OnDemandEngine) -> None:
        """Include a model; from now on it makes room before it loads."""
        self._engines.append(engine)
        engine.make_room = self.make_room

    def remove(self, engine: OnDemandEngine) -> None:
        """Exclude a model that was removed."""
        if engine in self._engines:
            self._engines.remove(engine)

    async def make_room(self, engine: OnDemandEngine) -> None:
        """Unload idle models until `engine` fits. Raises `QueueFull` if all others are in use."""
        if self._max_bytes is None:
            return
        async with self._lock:
            while (used := self.used_bytes - engine.occupied_bytes) + engine.num_bytes > self._max_bytes:
                idle = [each for each in self._engines if each is not engine and each.is_idle]
                if not idle:
                    raise QueueFull(
                        f"no memory for the model {engine.bundle.config.name}: it needs "
                        f"{_megabytes(engine.num_bytes)} of `memory_limit` {_megabytes(self._max_bytes)}, and models "
                        f"in use have {_megabytes(used)}; retry after {_RETRY_SECONDS:.0f} s",
                        _RETRY_SECONDS,
                    )
                await max(idle, key=lambda each: each.idle_seconds).unload()


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / _MEGABYTE:.0f} MB"
