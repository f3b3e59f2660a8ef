"""Pool of processes for documents: warm ones for short documents, killed ones replaced."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from server.documents.formats.registry import DocumentFormat
from server.documents.input.limits import FileLimits
from server.documents.isolation.process import DocumentProcess, IsolatedRewrite, ProcessLimits
from server.interface.errors import KvasirError

_log = logging.getLogger("kvasir.documents")

_MAX_IDLE = 2  # processes that wait for a document; each has some 40 MB


class DocumentProcessPool:
    """Processes, one document each at a time. Starts the first with the first document, and then keeps one in reserve.

    Belongs to one event loop.
    """

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._idle: list[DocumentProcess] = []
        self._starting: asyncio.Task[None] | None = None
        self._is_closed = False

    @asynccontextmanager
    async def rewrite(
        self, source: Path, sink: Path, kind: DocumentFormat, limits: FileLimits, on_long_step: Callable[[], None]
    ) -> AsyncIterator[IsolatedRewrite]:
        """Rewrite a document in a process. A process that has not finished at the end of the block is killed."""
        process = await self._take()
        try:
            yield process.rewrite(source, sink, kind, limits, on_long_step)
        finally:
            if process.is_free and not self._is_closed and len(self._idle) < _MAX_IDLE:
                self._idle.append(process)
            else:
                await process.kill()

    async def close(self) -> None:
        """End the idle processes. Documents in progress must have ended."""
        self._is_closed = True
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        while self._idle:
            await self._idle.pop().kill()

    async def _take(self) -> DocumentProcess:
        process = None
        while self._idle and process is None:
            process = self._idle.pop()
            if not process.is_alive:
                await process.kill()
                process = None
        if process is None and self._starting is not None:
            await asyncio.wait([self._starting])
            process = self._idle.pop() if self._idle else None
        process = process or await DocumentProcess.start(self._limits)
        if not self._idle and self._starting is None and not self._is_closed:
            self._starting = asyncio.create_task(self._start_reserve())
        return process

    async def _start_reserve(self) -> None:
        try:
            self._idle.append(await DocumentProcess.start(self._limits))
        except (KvasirError, OSError) as error:
            _log.warning("no reserve process for documents", extra={"reason": str(error)})
        finally:
            self._starting = None


class RunningSlots:
    """Limit on documents in progress. A document that computes for long gives its slot to shorter ones.

    There are as many slots for long documents as for all others, so up to twice `num_slots` documents run at once.
    """

    def __init__(self, num_slots: int) -> None:
        self._short = asyncio.Semaphore(num_slots)
        self._num_long_slots = num_slots

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for a slot, and yield a function to call while the document computes for long."""
        await self._short.acquire()
        is_long = False

        def move() -> None:
            nonlocal is_long
            if not is_long and self._num_long_slots:
                is_long = True
                self._num_long_slots -= 1
                self._short.release()

        try:
            yield move
        finally:
            if is_long:
                self._num_long_slots += 1
            else:
                self._short.release()
