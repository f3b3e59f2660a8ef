"""Errors that replies and ends of a process for documents become, and its priority."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from server.documents.formats.registry import format_of
from server.documents.input.limits import FileLimits
from server.documents.isolation.messages import LENGTH_BYTES, frame, parse_frame
from server.documents.isolation.process import DocumentProcess, ProcessLimits
from server.interface.errors import (
    DocumentCpuLimit,
    DocumentMemoryLimit,
    DocumentTooComplex,
    EngineFailed,
    InvalidDocument,
    KvasirError,
    StorageFull,
)


class Child:
    """A child process that ended with this code, or runs."""

    pid = 0

    def __init__(self, code: int | None) -> None:
        self._code = code

    def wait(self) -> int | None:
        """Return the code."""
        return self._code

    poll = wait


class Sent:
    """Bytes that were sent to the process."""

    def __init__(self) -> None:
        self.content = b""

    def write(self, content: bytes) -> None:
        """Keep bytes."""
        self.content += content


def _process(
    *replies: dict[str, object], code: int | None = None, limits: ProcessLimits | None = None
) -> DocumentProcess:
    """Return a process whose replies have arrived; then it ends with a code."""
    process = DocumentProcess(limits or ProcessLimits(), Child(code))  # type: ignore[arg-type]
    process._reader, process._writer = asyncio.StreamReader(), Sent()  # type: ignore[assignment]
    for reply in replies:
        process._reader.feed_data(frame(reply))
    process._reader.feed_eof()
    return process


def _run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (-signal.SIGPROF, DocumentCpuLimit, r"may take 7\.5 s of processor time"),
        (1, DocumentMemoryLimit, "may take 512 MB of memory"),
        (-signal.SIGSEGV, InvalidDocument, r"\(SIGSEGV\); it may be damaged"),
        (0, InvalidDocument, r"\(no signal\)"),
    ],
)
def test_the_end_of_a_process_is_the_error_of_its_document(code: int, kind: type[KvasirError], reason: str) -> None:
    async def scenario() -> None:
        with pytest.raises(kind, match=reason):
            await _process(code=code).request(None, 7.5)

    _run(scenario)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"type": "error", "code": DocumentTooComplex.code, "message": "the reason"}, DocumentTooComplex),
        ({"type": "error", "code": StorageFull.code, "message": "the reason"}, StorageFull),
        ({"type": "error", "code": "any_other", "message": "the reason"}, InvalidDocument),
        ({"type": "memory"}, DocumentMemoryLimit),
        ({"type": "bug", "traceback": "secret"}, EngineFailed),
    ],
)
def test_a_failed_document_leaves_the_process_free_if_it_replies_so(
    reply: dict[str, object], kind: type[KvasirError]
) -> None:
    async def scenario() -> None:
        for is_free in (True, False):
            process = _process({**reply, "is_free": is_free})
            process.is_free = False
            with pytest.raises(kind) as raised:
                await process.request(None, 1.0)
            assert "secret" not in str(raised.value)
            assert process.is_free is is_free
            if "message" in reply:
                assert str(raised.value) == "the reason"

    _run(scenario)


def test_a_process_is_not_free_while_it_reads() -> None:
    async def scenario() -> None:
        done = {"type": "done", "counts": {"num_translated": 1}, "is_free": True}
        process = _process({"type": "fragments", "fragments": ["a", "b"]}, done)
        assert await process.request(None, 1.0) == {"type": "fragments", "fragments": ["a", "b"]}
        assert not process.is_free
        await process.request(None, 1.0)
        assert process.is_free

    _run(scenario)


@pytest.mark.parametrize(
    ("num_bytes", "most", "seconds"), [(0, 60.0, 10.0), (500_000, 60.0, 25.0), (9_000_000, 60.0, 60.0)]
)
def test_the_processor_time_of_a_document_grows_with_its_size(
    num_bytes: int, most: float, seconds: float, tmp_path: Path
) -> None:
    async def scenario() -> None:
        source = tmp_path / "source"
        source.write_bytes(b"x" * num_bytes)
        process = _process(limits=ProcessLimits(max_cpu_seconds=most))
        process.rewrite(source, tmp_path / "sink", format_of("a.txt"), FileLimits(max_entries=7), lambda: None)
        message = parse_frame(cast(Sent, process._writer).content[LENGTH_BYTES:])
        assert message["max_cpu_seconds"] == pytest.approx(seconds)
        assert message["extension"] == ".txt"
        assert cast(dict[str, object], message["limits"])["max_entries"] == 7
        assert not process.is_free

    _run(scenario)


def test_a_long_step_lowers_the_priority_once_and_the_process_gets_no_other_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("server.documents.isolation.process._LONG_STEP_SECONDS", 0.005)
    lowered: list[int] = []
    monkeypatch.setattr("os.setpriority", lambda *arguments: lowered.append(arguments[-1]))

    async def scenario() -> None:
        (tmp_path / "source").write_bytes(b"x")
        process = DocumentProcess(ProcessLimits(), Child(None))  # type: ignore[arg-type]
        process._reader, process._writer = asyncio.StreamReader(), Sent()  # type: ignore[assignment]
        long_steps: list[int] = []

        def on_long_step() -> None:
            long_steps.append(1)
            if len(long_steps) == 3:
                process._reader.feed_data(frame({"type": "size", "num_units": 5, "num_characters": 70, "num_texts": 1}))

        steps = process.rewrite(tmp_path / "source", tmp_path / "sink", format_of("a.txt"), FileLimits(), on_long_step)
        size = await steps.measure()
        assert (size.num_units, size.num_characters) == (5, 70)
        assert len(long_steps) >= 3
        assert len(lowered) == 1
        assert lowered[0] > 0
        process._reader.feed_data(frame({"type": "fragments", "fragments": ["a"]}))
        assert await steps.advance(None) == [("a",)]
        process._reader.feed_data(frame({"type": "done", "counts": {"num_translated": 1}, "is_free": True}))
        assert await steps.advance([("b",)]) is None
        assert not process.is_free

    _run(scenario)
