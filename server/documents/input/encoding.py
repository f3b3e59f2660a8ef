"""Decoding and encoding of text files; byte order mark and encoding stay."""

import codecs
from dataclasses import dataclass
from typing import BinaryIO

from server.documents.input.limits import FileLimits
from server.interface.errors import DocumentTooLarge, InvalidDocument

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

# Codecs that no document uses: some take quadratic time, and all write other bytes than they read.
_NO_CHARSETS = frozenset(("undefined", "idna", "punycode", "unicode-escape", "unicode_escape", "raw-unicode-escape"))


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec, and the byte order mark at the beginning of the file, if there is one."""

    codec: str = "utf-8"
    mark: bytes = b""

    def decode(self, content: bytes) -> str:
        """Decode the text behind the mark; raises `InvalidDocument` with the position of the first wrong byte."""
        try:
            return content[len(self.mark) :].decode(self.codec)
        except UnicodeDecodeError as error:
            raise InvalidDocument(
                f"the file is not {self.codec.upper()}: {error.reason} at byte {error.start + len(self.mark)}; "
                "save it as UTF-8"
            ) from error

    def encode(self, text: str) -> bytes:
        """Encode a text, with the mark in front."""
        return self.mark + text.encode(self.codec, "replace")


def detect(beginning: bytes) -> Encoding:
    """Detect UTF-16 by its mark, else UTF-8. Others are not guessed: a wrong guess would change letters silently."""
    for mark, codec in _MARKS:
        if beginning.startswith(mark):
            return Encoding(codec, mark)
    return Encoding()


def codec_of(charset: str) -> str | None:
    """Return the codec that a document declares, or None if it is not for texts of documents."""
    try:
        "".encode(charset)  # raises for codecs of bytes
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):  # ValueError: a name with a NUL in it
        return None
    return None if name in _NO_CHARSETS else name


def read_part(source: BinaryIO, limits: FileLimits) -> bytes:
    """Read a whole file to parse; raises `DocumentTooLarge`."""
    content = source.read(limits.max_part_bytes + 1)
    if len(content) > limits.max_part_bytes:
        raise DocumentTooLarge(
            f"such a file may have {limits.max_part_bytes} bytes. Given: more than {limits.max_part_bytes} bytes"
        )
    return content


def read_text(source: BinaryIO, limits: FileLimits) -> tuple[str, Encoding]:
    """Read a whole text file to parse; returns its text with its line ends, and its encoding."""
    content = read_part(source, limits)
    encoding = detect(content)
    return encoding.decode(content), encoding
