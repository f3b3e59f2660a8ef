"""Bytes of a text file as text and back, with its byte order mark and its encoding kept."""

import codecs
from dataclasses import dataclass
from typing import BinaryIO

from server.documents.input.limits import FileLimits
from server.interface.errors import DocumentTooLarge, InvalidDocument

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

# Codecs of text that no document is written in: some take quadratic time, and all give other bytes than they read.
_NO_CHARSETS = frozenset(("undefined", "idna", "punycode", "unicode-escape", "unicode_escape", "raw-unicode-escape"))


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec, and the byte order mark that the file begins with, if it does."""

    codec: str = "utf-8"
    mark: bytes = b""

    def decode(self, content: bytes) -> str:
        """The text behind the mark; raises `InvalidDocument` with the place of the first wrong byte."""
        try:
            return content[len(self.mark) :].decode(self.codec)
        except UnicodeDecodeError as error:
            raise InvalidDocument(
                f"the file is not {self.codec.upper()}: {error.reason} at byte {error.start + len(self.mark)}; "
                "save it as UTF-8"
            ) from error

    def encode(self, text: str) -> bytes:
        """The text behind the mark."""
        return self.mark + text.encode(self.codec, "replace")


def detect(beginning: bytes) -> Encoding:
    """UTF-16 by its mark, else UTF-8. Nothing is guessed: a wrong guess turns letters into others without a word."""
    for mark, codec in _MARKS:
        if beginning.startswith(mark):
            return Encoding(codec, mark)
    return Encoding()


def codec_of(charset: str) -> str | None:
    """The codec that a document declares; None for those that are not for texts of documents."""
    try:
        "".encode(charset)  # refuses what is a codec of bytes
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):  # a name with a NUL in it is no name
        return None
    return None if name in _NO_CHARSETS else name


def read_part(source: BinaryIO, limits: FileLimits) -> bytes:
    """All of a file that is parsed at once; raises `DocumentTooLarge`."""
    content = source.read(limits.max_part_bytes + 1)
    if len(content) > limits.max_part_bytes:
        raise DocumentTooLarge(f"the file has more than {limits.max_part_bytes} bytes; such files may have no more")
    return content


def read_text(source: BinaryIO, limits: FileLimits) -> tuple[str, Encoding]:
    """All of a text file that is parsed at once, and how it is encoded; line ends are as they were."""
    content = read_part(source, limits)
    encoding = detect(content)
    return encoding.decode(content), encoding
