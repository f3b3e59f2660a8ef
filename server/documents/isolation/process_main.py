"""Main loop of a process that reads and writes documents, one after the other, within limits.

The process holds the tree of a document; the serving process only sees its texts. Exceeding a limit ends the document,
or the process with it.
"""

import gc
import logging
import resource
import signal
import socket
import traceback
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, cast

from server.documents.formats.options import FormatOptions
from server.documents.formats.registry import format_of
from server.documents.fragment import DocumentCounts, Fragment, num_characters
from server.documents.input.limits import FileLimits
from server.documents.isolation.messages import (
    LENGTH_BYTES,
    decode_fragments,
    encode_fragment,
    frame,
    frame_length,
    parse_frame,
)
from server.documents.steps import DocumentSteps
from server.interface.errors import DocumentTooLarge, KvasirError, StorageFull, means_storage_full

_BATCH_FRAGMENTS = 2000
_BATCH_CHARACTERS = 200_000
_MAX_KEPT_BYTES = 16_000_000
_GARBAGE_THRESHOLDS = (100_000, 20, 100)


def run(socket_number: int, max_memory_bytes: int) -> None:
    """Serve documents until the other end closes the socket."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The time limit of a document must end the process even inside a parser, so it keeps its default action.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    # Libraries log the text that they cannot read, and the server's log has no texts.
    logging.disable()
    # A document is a few million objects that are alive until it is written: looking for cycles among them takes as
    # long as reading it.
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    with (
        suppress(ConnectionError),  # the serving process was killed: no one reads an answer or an error
        socket.socket(fileno=socket_number) as connection,
        connection.makefile("rwb") as stream,
    ):
        _limit_memory(max_memory_bytes)
        server = _DocumentServer(cast(BinaryIO, stream))
        server.send({"type": "ready"})
        while server.serve_document():
            pass


def _limit_memory(num_bytes: int) -> None:
    """Limit private memory to what the process has now and `num_bytes` more.

    RLIMIT_DATA counts private writable memory, so shared libraries and reserved address space do not distort it.
    """
    limit = _private_bytes() + num_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _private_bytes() -> int:
    # https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html: the sixth number is data and stack, in pages.
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()


class _DocumentServer:
    """The reading end of the socket."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._private_bytes = _private_bytes()

    def serve_document(self) -> bool:
        """Serve one document; returns False when no more will come."""
        message = self._receive()
        if message is None:
            return False
        try:
            signal.setitimer(signal.ITIMER_PROF, cast(float, message["max_cpu_seconds"]))
            result: dict[str, object] = {"type": "done", "counts": asdict(self._rewrite(message))}
        except EOFError:
            return False
        except MemoryError:
            result = {"type": "memory"}
        except KvasirError as error:
            result = {"type": "error", "code": error.code, "message": str(error)}
        except Exception:  # noqa: BLE001 - the serving process logs it
            result = {"type": "bug", "traceback": traceback.format_exc()}
        signal.setitimer(signal.ITIMER_PROF, 0)
        # Memory that the parsers keep would be missing for the next document.
        is_free = result["type"] != "memory" and _private_bytes() - self._private_bytes < _MAX_KEPT_BYTES
        self.send({**result, "is_free": is_free})
        return is_free

    def _rewrite(self, message: dict[str, object]) -> DocumentCounts:
        """Rewrite a document, and return its counts."""
        source, sink = Path(cast(str, message["source"])), Path(cast(str, message["sink"]))
        options = cast(dict[str, Any], message["options"])
        options["columns"] = tuple(options["columns"])
        kind = format_of(f"document{message['extension']}", FormatOptions(**options))
        limits = FileLimits(**cast(dict[str, int], message["limits"]))
        # The largest file that a document of a permitted size can become.
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        allowed = limits.max_uncompressed_bytes
        allowed = allowed if most == resource.RLIM_INFINITY else min(allowed, most)
        resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, most))
        try:
            with closing(DocumentSteps(source, sink, kind, limits)) as steps:
                size = steps.measure()
                self.send({"type": "size"} | asdict(size))
                fragments = steps.advance(None)
                while fragments is not None:
                    fragments = steps.advance(self._translated(fragments))
                return steps.counts
        except OSError as error:
            if sink.stat().st_size < limits.max_uncompressed_bytes:
                if means_storage_full(error):
                    raise StorageFull("the server has no space left for this document; retry later") from error
                raise
            raise DocumentTooLarge(
                f"the translated document may have {limits.max_uncompressed_bytes} bytes. It has more"
            ) from error

    def _translated(self, fragments: list[Fragment]) -> list[Fragment]:
        translations: list[Fragment] = []
        for batch in _batches(fragments):
            self.send({"type": "fragments", "fragments": list(map(encode_fragment, batch))})
            message = self._receive()
            if message is None:
                raise EOFError
            translations += decode_fragments(message["fragments"])
        return translations

    def send(self, message: dict[str, object]) -> None:
        """Send a message to the serving process."""
        self._stream.write(frame(message))
        self._stream.flush()

    def _receive(self) -> dict[str, object] | None:
        header = self._stream.read(LENGTH_BYTES)
        if len(header) < LENGTH_BYTES:
            return None
        return parse_frame(self._stream.read(frame_length(header)))


def _batches(fragments: list[Fragment]) -> Iterator[list[Fragment]]:
    batch: list[Fragment] = []
    size = 0
    for fragment in fragments:
        length = num_characters(fragment)
        if batch and (len(batch) == _BATCH_FRAGMENTS or size + length > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(fragment)
        size += length
    if batch:
        yield batch
