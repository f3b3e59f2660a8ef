"""Encodings of the lines of `kvasir translate`: everything between input and output is UTF-8."""

import codecs
import io
import os
import stat
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
