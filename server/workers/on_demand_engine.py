"""An engine that is unloaded while idle and loaded by its next request, and the memory limit of all models."""

import asyncio
import ctypes
import gc
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bundle.loading import Bundle
from bundle.manifest import BundleError
from server.interface.engine_client import EngineClient, EngineStatus
from server.interface.errors import Draining, EngineFailed, QueueFull
from server.interface.request import Completion, FinishReason, Request


@dataclass(frozen=True, slots=True)
class UnloadedStatus:
    """Status of an engine that is not loaded: it has no rows, and is ready because its next request loads it."""

    waiting: int
    unfinished: int
    draining: bool
    running: int = 0
    rows_in_use: int = 0
    rows: int = 0
    heartbeat_age_seconds: float = 0.0
    has_engine: bool = True


class OnDemandEngine:
    """`EngineClient` of one model that is not always in memory.

    `open_engine` loads the model, in a thread. `num_bytes` is the memory that it takes. Methods are for the event
    loop's thread, except `close`.
    """

    def __init__(
        self,
        bundle: Bundle,
        open_engine: Callable[[], EngineClient],
        num_bytes: int,
        opened: EngineClient | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`opened` is the loaded engine, if it is loaded already."""
        self.bundle = bundle
        self.num_bytes = num_bytes
        self.make_room: Callable[[OnDemandEngine], Awaitable[None]] | None = None  # awaited before the model is loaded
        self._open_engine = open_engine
        self._engine = opened
        self._clock = clock
        self._num_calls = 0
        self._last_used = clock()
        self._loading: asyncio.Task[EngineClient] | None = None
        self._unloading: asyncio.Task[None] | None = None
        self._is_draining = False

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._engine is not None

    @property
    def occupied_bytes(self) -> int:
        """Memory of the model if it is loaded or being loaded, else 0."""
        return self.num_bytes if self._engine is not None or self._loading is not None else 0

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last call ended; 0 while a call runs."""
        return 0.0 if self._num_calls else self._clock() - self._last_used

    @property
    def is_idle(self) -> bool:
        """Whether the model is loaded and no call uses it."""
        return self._engine is not None and not self._num_calls

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the completions of the engine, which is loaded first if necessary.

        A request that expires meanwhile has `FinishReason.DEADLINE`. Raises `QueueFull` if the memory limit leaves no
        room, `EngineFailed` if the model cannot be loaded, and the exceptions of the engine.
        """
        self._num_calls += 1
        try:
            engine = self._engine
            if engine is None:
                engine = await self._load_in_time(requests)
            if engine is None:
                return [Completion(request, [], FinishReason.DEADLINE) for request in requests]
            return await engine.generate(requests)
        finally:
            self._num_calls -= 1
            self._last_used = self._clock()

    async def load(self) -> EngineClient:
        """Load the model unless it is loaded; calls at the same time share the work."""
        if self._engine is not None:
            return self._engine
        if self._is_draining:
            raise Draining("the model is being removed and accepts no new requests")
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        return await asyncio.shield(self._loading)

    async def unload(self) -> bool:
        """Free the memory of the model; return False, and change nothing, while a call uses it."""
        if self._num_calls or self._loading is not None:
            return False
        engine, self._engine = self._engine, None
        if engine is not None:
            self._unloading = asyncio.create_task(_close(engine))
        if self._unloading is not None:
            await asyncio.shield(self._unloading)
        return True

    def check_admission(self) -> None:
        """Raise `QueueFull` if the engine would reject any request now."""
        if self._engine is not None:
            self._engine.check_admission()

    def status(self) -> EngineStatus:
        """Return the status of the engine."""
        if self._engine is None:
            return UnloadedStatus(self._num_calls, self._num_calls, self._is_draining)
        return self._engine.status()

    async def drain(self, timeout_seconds: float) -> bool:
        """Reject new requests and wait for the others."""
        self._is_draining = True
        return True if self._engine is None else await self._engine.drain(timeout_seconds)

    def close(self) -> None:
        """Close the engine for good. Thread-safe."""
        self._is_draining = True
        engine = self._engine
        if engine is not None:
            engine.close()

    async def _load_in_time(self, requests: Sequence[Request]) -> EngineClient | None:
        """Return the loaded engine, or None if every request expires before."""
        deadlines = [request.deadline for request in requests]
        latest = None if not deadlines or None in deadlines else max(each for each in deadlines if each is not None)
        try:
            async with asyncio.timeout(None if latest is None else max(latest - time.monotonic(), 0)):
                return await self.load()
        except TimeoutError:
            return None

    async def _load(self) -> EngineClient:
        try:
            if self._unloading is not None:
                await self._unloading
                self._unloading = None
            if self.make_room is not None:
                await self.make_room(self)
            engine = await asyncio.to_thread(self._open_engine)
        except (BundleError, EngineFailed, OSError) as error:
            raise EngineFailed(f"the model {self.bundle.config.name} could not be loaded: {error}") from error
        finally:
            self._loading = None
        self._engine = engine
        if self._is_draining:  # closed while it was loaded
            await asyncio.to_thread(engine.close)
        return engine


async def _close(engine: EngineClient) -> None:
    await asyncio.to_thread(engine.close)
    del engine
    has_frozen = gc.get_freeze_count() > 0  # a server excludes what was loaded at its start
    gc.unfreeze()
    await asyncio.to_thread(return_unused_memory)
    if has_frozen:
        gc.freeze()


_MEGABYTE = 1_000_000
_RETRY_SECONDS = 5.0  # a model in use is rarely idle before


class MemoryBudget:
    """Unloads idle models, the least recently used first, when another one needs their memory."""

    def __init__(self, max_bytes: int | None) -> None:
        """`max_bytes` None means no limit."""
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


def return_unused_memory() -> None:
    """Collect unreachable objects, and return the free pages of the allocator."""
    gc.collect()
    return_free_pages()


def return_free_pages() -> None:
    """Give the free pages of the allocator back to the operating system (glibc). Does not hold the interpreter."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
