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
    """A line of the input is not in the encoding; the message has the number of the line."""


class LineTooLong(ValueError):
    """A line of the input has too many characters; the message has its number."""


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


_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
_CHUNK_BYTES = 64 * 1024
_MAX_CHUNKS_AHEAD = 64  # 4 MB in memory besides the lines that are being translated
_MAX_LINE_CHARACTERS = 100_000_000  # a device such as /dev/zero never ends a line
_MORE_SECONDS = 0.05  # for the rest of an input whose beginning has arrived


class InputLines:
    """Lines of a stream, decoded and without their ends.

    `read_beginning` reads on the calling thread; after `start` a thread reads the rest.
    """

    def __init__(self, source: BinaryIO, codec: str = _UTF8) -> None:
        self._source = source
        self._chunks = _chunks(cast(BufferedIOBase, source), codec)  # files, standard input and BytesIO are buffered
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


def _chunks(source: BufferedIOBase, codec: str) -> Iterator[list[str]]:
    """Yield the lines that end in each chunk of bytes. Only LF and CRLF end a line: other line breaks are text.

    Raises `UndecodableInput` and `LineTooLong` for the first wrong line, after those before it.
    """
    decoder = codecs.getincrementaldecoder(codec)()
    mark = _BYTE_ORDER_MARK  # until there is text
    num_lines, unfinished, has_ended = 0, [""], False
    while not has_ended:
        chunk, problem = source.read1(_CHUNK_BYTES), None
        has_ended = not chunk
        try:
            text = decoder.decode(chunk, final=has_ended)
        except UnicodeDecodeError as error:
            text, problem = error.object[: error.start].decode(codec), error
        if text:
            text, mark = text.removeprefix(mark), ""
        *lines, rest = text.split("\n")
        if lines:
            lines[0], unfinished = "".join((*unfinished, lines[0])), []
            num_lines += len(lines)
            yield [line.removesuffix("\r") for line in lines]
        unfinished.append(rest)
        if problem is not None:
            place = len("".join(unfinished).encode(codec))
            cause = f"{problem.reason} at byte {place}; set --encoding"
            raise UndecodableInput(f"line {num_lines + 1} is not {codec.upper()}: {cause}") from problem
        if sum(map(len, unfinished)) > _MAX_LINE_CHARACTERS:
            limit = f"at most {_MAX_LINE_CHARACTERS} characters; divide it, or name a text file"
            raise LineTooLong(f"line {num_lines + 1} must have {limit}")
    if last := "".join(unfinished):
        yield [last.removesuffix("\r")]
