"""Lines of the input as soon as they arrive, in any encoding; a thread reads ahead."""

import codecs
import io
import os
import select
import stat
import threading
from collections.abc import Iterator
from io import BufferedIOBase, UnsupportedOperation
from queue import Empty, Queue
from typing import BinaryIO, cast

from server.documents.input.encoding import Encoding, check_encoding, detect, detect_in, has_mark

_UTF8 = "utf-8"


class UndecodableInput(ValueError):
    """The input is not in its encoding."""


def input_encoding(source: BinaryIO, name: str | None) -> Encoding:
    """Return the encoding of the input, and move behind its mark: the one named, else detected.

    A pipe cannot be read twice, and a device may never end: they are UTF-8 unless `name` or a mark states another one.
    """
    if name is not None and check_encoding(name) == _UTF8:
        return Encoding()
    if source.seekable() and not _is_device(source):
        found = detect_in(source, name)
        if found.codec == _UTF8:
            source.seek(0)  # the reader of lines removes the mark
            return Encoding()
        return found
    beginning = cast(io.BufferedReader, source).peek(4)[:4] if hasattr(source, "peek") else b""
    if name is None and (not has_mark(beginning) or beginning.startswith(codecs.BOM_UTF8)):
        return Encoding()
    found = detect(beginning, name)
    source.read(len(found.mark))
    return found


def _is_device(source: BinaryIO) -> bool:
    try:
        return stat.S_ISCHR(os.fstat(source.fileno()).st_mode)
    except OSError:  # in memory
        return False


class Utf8Input(io.RawIOBase):
    """A stream in any encoding as one in UTF-8. Raises `UndecodableInput`."""

    def __init__(self, source: BinaryIO, encoding: Encoding) -> None:
        self._source = cast(io.BufferedReader, source)
        self._name = encoding.codec.upper()
        self._decoder = codecs.getincrementaldecoder(encoding.codec)()
        self._has_ended = False

    def read1(self, num_bytes: int) -> bytes:
        """Return some bytes; none at the end."""
        while not self._has_ended:
            chunk = self._source.read1(num_bytes)
            self._has_ended = not chunk
            try:
                text = self._decoder.decode(chunk, final=self._has_ended)
            except UnicodeDecodeError as error:
                raise UndecodableInput(f"the input is not {self._name}: {error.reason}; set --encoding") from error
            if text:
                return text.encode()
        return b""

    def fileno(self) -> int:
        """Return the file descriptor of the source."""
        return self._source.fileno()


class EncodedOutput:
    """A stream for UTF-8 that writes another encoding. Raises `InvalidDocument` for letters that it lacks."""

    def __init__(self, sink: BinaryIO, encoding: Encoding) -> None:
        self._sink = sink
        self._encoding = encoding
        sink.write(encoding.mark)

    def write(self, content: bytes) -> int:
        """Write whole lines."""
        return self._sink.write(self._encoding.encode_part(content.decode()))

    def flush(self) -> None:
        """Flush the stream."""
        self._sink.flush()


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK_BYTES = 64 * 1024
_MAX_CHUNKS_AHEAD = 64  # 4 MB in memory besides the lines that are being translated
_MAX_LINE_BYTES = 100_000_000  # a device such as /dev/zero never ends a line
_MORE_SECONDS = 0.05  # for the rest of an input whose beginning has arrived


class NotUtf8(ValueError):
    """A line of the input is not UTF-8; the message has the number of the line."""


class LineTooLong(ValueError):
    """A line of the input has too many bytes; the message has its number."""


class InputLines:
    """Lines of a stream, without their ends.

    `read_beginning` reads on the calling thread; after `start` a thread reads the rest.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._chunks = _chunks(cast(BufferedIOBase, source))  # files, standard input and BytesIO are buffered
        self._queue: Queue[list[str] | Exception | None] = Queue(_MAX_CHUNKS_AHEAD)
        self._arrived: list[str] = []
        self._has_ended = False
        self._error: Exception | None = None

    @property
    def is_exhausted(self) -> bool:
        """Whether every line has been taken. Raises the error of a wrong line or of the stream after all before it."""
        if self._arrived or not self._has_ended:
            return False
        if self._error is not None:
            raise self._error
        return True

    def read_beginning(self, num_characters: int) -> int | None:
        """Read until so many characters have arrived, or none for a moment.

        Returns how many characters the whole input has, or None if it has not ended.
        """
        num_arrived = 0
        while num_arrived < num_characters and not self._has_ended:
            if self._arrived and not self._is_readable():
                break
            num_before = len(self._arrived)
            self._receive(self._next_chunk())
            num_arrived += sum(map(len, self._arrived[num_before:]))
        return num_arrived if self._has_ended else None

    def start(self) -> None:
        """Start the thread that reads the rest, if there is any."""
        if not self._has_ended:
            threading.Thread(target=self._read_rest, name="input", daemon=True).start()

    def take(self, max_lines: int, *, may_wait: bool) -> list[str]:
        """Return the next lines that have arrived, up to `max_lines`; wait for the first one if `may_wait`."""
        while len(self._arrived) < max_lines and not self._has_ended:
            try:
                self._receive(self._queue.get(block=may_wait and not self._arrived))
            except Empty:
                break
        taken, self._arrived = self._arrived[:max_lines], self._arrived[max_lines:]
        return taken

    def _receive(self, chunk: list[str] | Exception | None) -> None:
        if isinstance(chunk, list):
            self._arrived += chunk
        else:
            self._has_ended, self._error = True, chunk

    def _next_chunk(self) -> list[str] | Exception | None:
        try:
            return next(self._chunks, None)
        except Exception as error:  # noqa: BLE001 - raised where the lines before it have been taken
            return error

    def _read_rest(self) -> None:
        chunk: list[str] | Exception | None = []
        while isinstance(chunk, list):
            chunk = self._next_chunk()
            self._queue.put(chunk)

    def _is_readable(self) -> bool:
        """Return whether a read would not block, as far as the system can tell."""
        try:
            return bool(select.select([self._source], [], [], _MORE_SECONDS)[0])
        except (OSError, ValueError, UnsupportedOperation):  # in memory, or not a socket on Windows
            return True


def _chunks(source: BufferedIOBase) -> Iterator[list[str]]:
    """Yield the lines that end in each chunk of bytes. Only LF and CRLF end a line: other line breaks are text."""
    number = 0
    unfinished: list[bytes] = []
    num_unfinished = 0
    while chunk := source.read1(_CHUNK_BYTES):
        if b"\n" not in chunk:
            unfinished.append(chunk)
            num_unfinished += len(chunk)
            if num_unfinished > _MAX_LINE_BYTES:
                raise LineTooLong(
                    f"line {number + 1} must have at most {_MAX_LINE_BYTES} bytes; divide it, or name a text file"
                )
            continue
        *lines, rest = b"".join([*unfinished, chunk]).split(b"\n")
        unfinished = [rest] if rest else []
        num_unfinished = len(rest)
        yield from _decoded(lines, number)
        number += len(lines)
    if unfinished:
        yield from _decoded([b"".join(unfinished)], number)


def _decoded(lines: list[bytes], num_before: int) -> Iterator[list[str]]:
    """Yield the lines as texts at once. Raises `NotUtf8` for the first wrong one, after those before it."""
    if not num_before:
        lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
    decoded: list[str] = []
    for number, line in enumerate(lines, start=num_before + 1):
        try:
            decoded.append(line.removesuffix(b"\r").decode())
        except UnicodeDecodeError as error:
            yield decoded
            raise NotUtf8(
                f"line {number} is not UTF-8: {error.reason} at byte {error.start}; set --encoding"
            ) from error
    yield decoded
