"""Documents through the layer and back, with translations that a test can predict."""

import asyncio
import contextlib
import io
import re
import signal
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from server.documents.formats.options import NO_FORMAT_OPTIONS, FormatOptions
from server.documents.formats.registry import format_of
from server.documents.input.limits import FileLimits
from server.documents.rewriting import InProcessRewrite, Translate, translate_document

# What is tested with it takes one second; in quadratic time it would take minutes.
CPU_SECONDS = 20
_TAG = re.compile(r"(<[^>]*>|&[a-z]+;)")


async def same(texts: Sequence[str]) -> list[str]:
    """A translation that changes nothing."""
    return list(texts)


async def loud(texts: Sequence[str]) -> list[str]:
    """A translation into capital letters."""
    return [text.upper() for text in texts]


async def loud_html(texts: Sequence[str]) -> list[str]:
    """Return HTML with its text in capitals; tags and code stay."""
    return ["".join(part if _TAG.fullmatch(part) else part.upper() for part in _TAG.split(text)) for text in texts]


async def marked_html(texts: Sequence[str]) -> list[str]:
    """The identity, as HTML."""
    return list(texts)


SAME = Translate(same, marked_html)
LOUD = Translate(loud, loud_html)
LOUD_PLAIN = Translate(loud)


def translated(
    content: bytes,
    extension: str,
    translate: Translate,
    limits: FileLimits | None = None,
    options: FormatOptions = NO_FORMAT_OPTIONS,
) -> bytes:
    """The document after its translation; what was counted is what was done."""
    limits = limits or FileLimits()
    kind = format_of(f"document{extension}", options)
    progress: list[tuple[int, int]] = []

    async def run(source: Path, sink: Path) -> None:
        with InProcessRewrite(source, sink, kind, limits) as steps:
            size = await steps.measure()
            await translate_document(steps, translate, size, lambda done, total: progress.append((done, total)))
        assert not size.num_units or progress[-1] == (size.num_units, size.num_units)
        assert progress == sorted(progress)

    with TemporaryDirectory() as folder:
        source, sink = Path(folder) / "source", Path(folder) / "sink"
        source.write_bytes(content)
        asyncio.run(run(source, sink))
        return sink.read_bytes()


def unpacked(content: bytes) -> dict[str, bytes]:
    """The files of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive of these files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def read_soon(content: str | bytes, extension: str) -> None:
    """Read a document to its end; `TimeoutError` if that takes far longer than it may.

    It is the processor's time that counts, so that a busy machine fails nothing. Here and not in a thread, because
    signals come to the main thread alone; `re` looks for them while it matches.
    """

    def stop(*_: object) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        steps = format_of(f"document{extension}").rewrite(
            io.BytesIO(content.encode() if isinstance(content, str) else content), None, FileLimits()
        )
        with contextlib.suppress(StopIteration):
            fragments = next(steps)
            while True:
                fragments = steps.send(fragments)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
