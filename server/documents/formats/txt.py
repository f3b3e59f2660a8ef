"""Plain text: every line is a paragraph. Reads and writes in windows, so that a long file needs no more memory."""

import codecs
import io
from collections.abc import Iterator
from typing import BinaryIO

from server.documents.fragment import Fragment, Rewrite, as_window, next_window
from server.documents.input.encoding import Encoding, detect_in
from server.documents.input.limits import Density, FileLimits
from server.interface.errors import DocumentTooComplex, InvalidDocument

_WINDOW_LINES = 2000
_READ_BYTES = 1 << 16
_LINES = Density(20_000, 8)  # with a letter; a list of words has one in ten characters


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, encoding: str | None = None) -> Rewrite:
    """Rewrite every line with a letter in it, without the white space at its ends; line ends stay."""
    found = detect_in(source, encoding)
    if sink is not None:
        sink.write(found.mark)
    num_bytes, num_lines = source.seek(0, io.SEEK_END), 0
    is_held = limits.holds(num_bytes)
    source.seek(len(found.mark))
    lines = _lines(source, found, limits)
    while window := next_window(lines, _WINDOW_LINES, is_held=is_held):
        texts = [line.strip() for line in window]
        wanted = [index for index, text in enumerate(texts) if any(map(str.isalpha, text))]
        num_lines += len(wanted)
        _LINES.check(num_lines, num_bytes, "lines with a letter")
        fragments: list[Fragment] = [(texts[index],) for index in wanted]
        translations = (yield as_window(fragments, is_held=is_held)) if wanted else ()
        for index, translation in zip(wanted, translations, strict=True):
            before, text, after = window[index].partition(texts[index])
            new = "".join(map(str, translation))
            if new != text:
                window[index] = before + new + after
        if sink is not None:
            sink.write(found.encode_part("".join(window)))


def _lines(source: BinaryIO, encoding: Encoding, limits: FileLimits) -> Iterator[str]:
    """Yield lines with their ends, which are those that end a sentence everywhere."""
    decoder = codecs.getincrementaldecoder(encoding.codec)()
    rest = ""
    while True:
        chunk = source.read(_READ_BYTES)
        try:
            lines = (rest + decoder.decode(chunk, final=not chunk)).splitlines(keepends=True)
        except UnicodeDecodeError as error:
            raise InvalidDocument(
                f"the file is not {encoding.codec.upper()}: {error.reason} near byte {source.tell()}; save it as UTF-8"
            ) from error
        # The last line may continue in the next chunk, and a CR may belong to a CRLF.
        rest = lines.pop() if lines and chunk else ""
        yield from lines
        if not chunk:
            return
        if len(rest) > limits.max_paragraph_characters:
            raise DocumentTooComplex(
                f"a line may have {limits.max_paragraph_characters} characters. The one that begins with "
                f"{rest.strip()[:40]!r} has more"
            )
