"""Encodings of text files: declared, marked or detected; files are written in the encoding in which they were read."""

import codecs
from dataclasses import dataclass
from typing import BinaryIO

from server.documents.input.limits import FileLimits
from server.interface.errors import DocumentTooLarge, InvalidDocument, InvalidRequest

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

# Codecs that no document uses: some take quadratic time, and all write other bytes than they read.
_NO_CHARSETS = frozenset(("undefined", "idna", "punycode", "unicode-escape", "unicode_escape", "raw-unicode-escape"))

# Encodings of texts that are neither UTF-8 nor UTF-16, those of more documents first. Texts in Latin letters have few
# bytes above ASCII, those in others mostly such bytes.
_LATIN = ("cp1252", "cp1250", "cp1254", "cp1257")
_OTHERS = ("cp1251", "shift_jis", "gb18030", "big5", "euc_kr", "euc_jp", "cp1253", "cp1255", "cp1256", "koi8_r")
_MAX_LATIN_SHARE = 0.55
_SAMPLE_BYTES = 1 << 16
# Codecs without these characters have the plain ones.
_PLAIN_MARKS = str.maketrans(
    {"„": '"', "“": '"', "”": '"', "‚": "'", "‘": "'", "’": "'", "–": "-", "—": "-", "…": "...", "\u202f": " "}
)


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
        """Encode a text, with the mark in front. Raises as `encode_part` does."""
        return self.mark + self.encode_part(text)

    def encode_part(self, text: str) -> bytes:
        """Encode a part of a text, without a mark.

        Quotation marks and dashes that the codec lacks become plain ones. Raises `InvalidDocument` for other characters
        that it lacks.
        """
        if self.codec.startswith("utf"):
            return text.encode(self.codec, "replace")  # lone surrogates only
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError:
            try:
                return text.translate(_PLAIN_MARKS).encode(self.codec)
            except UnicodeEncodeError as error:
                raise InvalidDocument(
                    f"the translation contains {error.object[error.start]!r}, which {self.codec.upper()} cannot write; "
                    "save the document as UTF-8"
                ) from error


def check_encoding(name: str) -> str:
    """Return the codec with this name; raises `InvalidRequest` if there is none for texts."""
    codec = codec_of(name)
    if codec is None:
        raise InvalidRequest(f"`encoding` must be one such as utf-8, utf-16 or latin-1. Given: {name[:40]!r}")
    return codec


def has_mark(content: bytes) -> bool:
    """Return whether a text begins with a byte order mark."""
    return any(content.startswith(mark) for mark, _ in _MARKS)


def detect(content: bytes, name: str | None = None) -> Encoding:
    """Return the encoding of a whole text: `name`, or by its mark, or UTF-8 if it is that, or the most probable other.

    Raises `InvalidDocument` for bytes that are no text.
    """
    if (stated := _stated(content, name)) is not None:
        return stated
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return Encoding(_detect_other(content[max(0, error.start - _SAMPLE_BYTES // 2) :][:_SAMPLE_BYTES], error))
    return Encoding()


def detect_in(source: BinaryIO, name: str | None = None) -> Encoding:
    """Return the encoding of a file of any size, read in parts; the position is then behind its mark."""
    chunk, before = source.read(_SAMPLE_BYTES), b""
    found = _stated(chunk, name)
    if found is None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        found = Encoding()
        try:
            while chunk:
                decoder.decode(chunk)
                chunk, before = source.read(_SAMPLE_BYTES), (before + chunk)[-_SAMPLE_BYTES // 2 :]
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            # The text around the first byte that is not UTF-8.
            found = detect(before.lstrip(bytes(range(0x80, 0xC0))) + chunk)
    source.seek(len(found.mark))
    return found


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


def read_text(source: BinaryIO, limits: FileLimits, encoding: str | None = None) -> tuple[str, Encoding]:
    """Read a whole text file to parse; returns its text with its line ends, and its encoding."""
    content = read_part(source, limits)
    found = detect(content, encoding)
    return found.decode(content), found


def _stated(content: bytes, name: str | None) -> Encoding | None:
    """Return the encoding that is named or marked, or UTF-16 that is clear from the beginning of a text."""
    for mark, codec in _MARKS:
        if content.startswith(mark) and (name is None or codec.startswith(_family(check_encoding(name)))):
            # Some programs write a mark in front of one that is there.
            return Encoding(codec, mark * 2 if content.startswith(mark * 2) else mark)
    if name is not None:
        named = check_encoding(name).removesuffix("-sig")  # that codec writes a mark in front of each part of a text
        return Encoding((_utf16_without_mark(content) or "utf-16-le") if named == "utf-16" else named)
    wide = _utf16_without_mark(content)
    return None if wide is None else Encoding(wide)


def _family(codec: str) -> str:
    return codec.removesuffix("-sig").removesuffix("-le").removesuffix("-be")


def _utf16_without_mark(content: bytes) -> str | None:
    """Return UTF-16 if half of either the even or the odd bytes are 0, as in texts of European languages."""
    sample = content[:4096]
    half = len(sample) // 2
    if half and sample[1::2].count(0) * 2 > half and sample[::2].count(0) * 10 < half:
        return "utf-16-le"
    if half and sample[::2].count(0) * 2 > half and sample[1::2].count(0) * 10 < half:
        return "utf-16-be"
    return None


def _detect_other(sample: bytes, error: UnicodeDecodeError) -> str:
    if b"\0" in sample or sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in sample) * 20 > len(sample):
        raise InvalidDocument(f"the file is not a text: {error.reason} at byte {error.start}")
    # Imported where it is needed: most texts are UTF-8.
    import charset_normalizer

    num_high = sum(byte >= 0x80 for byte in sample)
    num_letters = num_high + sum(byte < 0x80 and chr(byte).isalpha() for byte in sample)
    candidates = _LATIN if num_high < _MAX_LATIN_SHARE * num_letters else _OTHERS
    matches = charset_normalizer.from_bytes(
        sample, cp_isolation=list(candidates), preemptive_behaviour=False, enable_fallback=False
    )
    found = [
        (match.chaos, -match.coherence, candidates.index(name))
        for match in matches
        for name in match.could_be_from_charset
        if name in candidates
    ]
    return candidates[min(found)[2] if found else 0]
