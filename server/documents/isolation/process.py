"""One process that reads and writes documents, as the serving process sees it."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, cast

from server.documents.formats.registry import DocumentFormat
from server.documents.fragment import DocumentCounts, Fragment
from server.documents.input.limits import MEGABYTE, FileLimits
from server.documents.isolation.messages import (
    LENGTH_BYTES,
    decode_fragments,
    encode_fragment,
    frame,
    frame_length,
    parse_frame,
)
from server.documents.rewriting import in_thread
from server.documents.steps import DocumentSize
from server.interface.errors import (
    DocumentCpuLimit,
    DocumentMemoryLimit,
    DocumentTooComplex,
    DocumentTooLarge,
    EngineFailed,
    InvalidDocument,
    KvasirError,
    StorageFull,
)

_log = logging.getLogger("kvasir.documents")

# The path is an argument, because the process inherits no `sys.path` of a program that changed it.
_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); "
    "from server.documents.isolation.process_main import run; run(int(sys.argv[1]), int(sys.argv[2]))"
)
_STREAM_BYTES = 1 << 18
_LONG_STEP_SECONDS = 0.5
_LONG_STEP_NICENESS = 15  # above that of engines
# Processor time of a document: a part for every document, a part for its size. Office documents are compressed, so a
# megabyte of them is some ten megabytes of XML.
_CPU_SECONDS = 10.0
_CPU_SECONDS_PER_MEGABYTE = 30.0
_ERRORS = {each.code: each for each in (DocumentTooComplex, DocumentTooLarge, InvalidDocument, StorageFull)}


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits on reading and writing one document."""

    max_cpu_seconds: float = 60.0
    max_memory_bytes: int = 512 * MEGABYTE  # above what the process has before it reads


class DocumentProcess:
    """A child process. `rewrite` gives it a document; `kill` ends it at any time."""

    def __init__(self, limits: ProcessLimits, process: subprocess.Popen[bytes]) -> None:
        self.is_free = True  # ready for a document
        self._limits = limits
        self._process = process
        self._has_low_priority = False
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    @classmethod
    async def start(cls, limits: ProcessLimits) -> Self:
        """Start a process and wait until it is ready. Raises `EngineFailed` if it ends before."""
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", _BOOTSTRAP, str(theirs.fileno()), str(limits.max_memory_bytes)]
            process = subprocess.Popen(  # noqa: ASYNC220, S603 - takes a millisecond; no part of a document is in the command
                [*command, json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is for the serving process, which ends this one
            )
        started = cls(limits, process)
        try:
            started._reader, started._writer = await asyncio.open_unix_connection(sock=ours, limit=_STREAM_BYTES)
            if (await started._receive())["type"] != "ready":
                raise EngineFailed("the process for documents did not start")
        except BaseException:
            ours.close()
            await started.kill()
            raise
        return started

    def rewrite(
        self, source: Path, sink: Path, kind: DocumentFormat, limits: FileLimits, on_long_step: Callable[[], None]
    ) -> "IsolatedRewrite":
        """Begin to rewrite `source` to `sink`. `on_long_step` is called every 0.5 s that the process computes."""
        num_megabytes = source.stat().st_size / MEGABYTE
        max_cpu_seconds = min(self._limits.max_cpu_seconds, _CPU_SECONDS + _CPU_SECONDS_PER_MEGABYTE * num_megabytes)
        self.is_free = False
        self._send(
            {
                "source": str(source),
                "sink": str(sink),
                "extension": kind.extension,
                "options": asdict(kind.options),
                "limits": asdict(limits),
                "max_cpu_seconds": max_cpu_seconds,
            }
        )
        return IsolatedRewrite(self, max_cpu_seconds, on_long_step)

    async def kill(self) -> None:
        """End the process now."""
        if hasattr(self, "_writer"):
            self._writer.close()
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    def lower_priority(self) -> None:
        """Let other processes compute first. Cannot be undone, so that the process gets no other document."""
        if not self._has_low_priority and self.is_alive:
            self._has_low_priority = True
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _LONG_STEP_NICENESS)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    async def request(self, message: dict[str, object] | None, max_cpu_seconds: float) -> dict[str, object]:
        """Send a message if there is one, and return the next one of the process, without its errors.

        Raises the errors of reading a document, `DocumentCpuLimit` and `DocumentMemoryLimit`.
        """
        if message is not None:
            self._send(message)
        try:
            reply = await self._receive()
        except (asyncio.IncompleteReadError, ConnectionError):
            raise await self._reason_of_end(max_cpu_seconds) from None
        self.is_free = reply.get("is_free") is True and not self._has_low_priority
        match reply["type"]:
            case "error":
                raise _ERRORS.get(cast(str, reply["code"]), InvalidDocument)(cast(str, reply["message"]))
            case "memory":
                raise self._memory_error()
            case "bug":
                _log.error("document process failed", extra={"traceback": reply["traceback"]})
                raise EngineFailed("the server failed on this document; its log has the cause")
        return reply

    def _send(self, message: dict[str, object]) -> None:
        self._writer.write(frame(message))

    async def _receive(self) -> dict[str, object]:
        length = frame_length(await self._reader.readexactly(LENGTH_BYTES))
        return parse_frame(await self._reader.readexactly(length))

    async def _reason_of_end(self, max_cpu_seconds: float) -> KvasirError:
        code = await asyncio.to_thread(self._process.wait)
        if code == -signal.SIGPROF:
            return DocumentCpuLimit(
                f"reading this document may take {max_cpu_seconds:.1f} s of processor time and took more; divide it, "
                "or raise --document-max-cpu-seconds"
            )
        if code > 0:  # no memory was left even to report that
            return self._memory_error()
        name = signal.Signals(-code).name if code else "no signal"
        return InvalidDocument(f"reading this document ended the process that read it ({name}); it may be damaged")

    def _memory_error(self) -> DocumentMemoryLimit:
        return DocumentMemoryLimit(
            f"reading this document may take {self._limits.max_memory_bytes // MEGABYTE} MB of memory and took more; "
            "divide it, or raise --document-max-memory-megabytes"
        )


class IsolatedRewrite:
    """Rewriting of one document in a child process, as `rewriting.RewriteSteps`."""

    def __init__(self, process: DocumentProcess, max_cpu_seconds: float, on_long_step: Callable[[], None]) -> None:
        self.counts = DocumentCounts()  # known at the end
        self._process = process
        self._max_cpu_seconds = max_cpu_seconds
        self._on_long_step = on_long_step

    async def measure(self) -> DocumentSize:
        """Return the size of the document. Called once, first."""
        reply = await self._step(None)
        return DocumentSize(*(cast(int, reply[name]) for name in ("num_units", "num_characters", "num_texts")))

    async def advance(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        """Send translations of the last fragments, and return the next fragments, or None at the end."""
        # In a thread: a paragraph may have 66,000 tags.
        message: dict[str, object] | None = None
        if translations is not None:
            message = {"fragments": await in_thread(lambda: list(map(encode_fragment, translations)))}
        reply = await self._step(message)
        if reply["type"] == "fragments":
            return await in_thread(decode_fragments, reply["fragments"])
        self.counts = DocumentCounts(**cast(dict[str, int], reply["counts"]))
        return None

    async def _step(self, message: dict[str, object] | None) -> dict[str, object]:
        step = asyncio.ensure_future(self._process.request(message, self._max_cpu_seconds))
        try:
            while not (await asyncio.wait([step], timeout=_LONG_STEP_SECONDS))[0]:
                self._process.lower_priority()
                self._on_long_step()
        except asyncio.CancelledError:
            step.cancel()
            raise
        return step.result()
