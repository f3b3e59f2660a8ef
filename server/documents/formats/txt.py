"""Plain text: every line is a paragraph. Reads and writes in windows, so that a long file needs no more memory."""

import codecs
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from server.documents.fragment import Rewrite
from server.documents.input.encoding import Encoding, detect_in
from server.documents.input.limits import FileLimits
from server.interface.errors import DocumentTooComplex, InvalidDocument

_WINDOW_LINES = 2000


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, encoding: str | None = None) -> Rewrite:
    """Rewrite every line with a letter in it, without the white space at its ends; line ends stay."""
    found = detect_in(source, encoding)
    if sink is not None:
        sink.write(found.mark)
    lines = _lines(source, found, limits)
    while window := list(islice(lines, _WINDOW_LINES)):
        texts = [line.strip() for line in window]
        wanted = [index for index, text in enumerate(texts) if any(map(str.isalpha, text))]
        translated = iter((yield [(texts[index],) for index in wanted]) if wanted else ())
        for index in wanted:
            start = window[index].index(texts[index])
            rest = window[index][start + len(texts[index]) :]
            window[index] = window[index][:start] + "".join(map(str, next(translated))) + rest
        if sink is not None:
            sink.write(found.encode_part("".join(window)))


def _lines(source: BinaryIO, encoding: Encoding, limits: FileLimits) -> Iterator[str]:
    """Yield lines with their ends, which are those that end a sentence everywhere."""
    reader = codecs.getreader(encoding.codec)(source)
    rest = ""
    while True:
        try:
            chunk = reader.read(1 << 16)
        except UnicodeDecodeError as error:
            raise InvalidDocument(
                f"the file is not {encoding.codec.upper()}: {error.reason} near byte {source.tell()}; save it as UTF-8"
            ) from error
        if not chunk:
            break
        lines = (rest + chunk).splitlines(keepends=True)
        # The last line may continue in the next chunk, and a CR may belong to a CRLF.
        rest = lines.pop()
        yield from lines
        if len(rest) > limits.max_paragraph_characters:
            raise DocumentTooComplex(
                f"a line may have {limits.max_paragraph_characters} characters. The one that begins with "
                f"{rest.strip()[:40]!r} has more"
            )
    if rest:
        yield rest
