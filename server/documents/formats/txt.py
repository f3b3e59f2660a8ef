"""Plain text: every line is a paragraph. Read and written in windows, so that a long file needs no more memory."""

import codecs
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from server.documents.fragment import Rewrite
from server.documents.input.encoding import Encoding, detect
from server.documents.input.limits import FileLimits
from server.interface.errors import InvalidDocument

_WINDOW_LINES = 1000


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Every line with a letter in it, without the white space at its ends; line ends stay what they were."""
    encoding = detect(source.read(4))
    source.seek(len(encoding.mark))
    if sink is not None:
        sink.write(encoding.mark)
    lines = _lines(source, encoding, limits)
    while window := list(islice(lines, _WINDOW_LINES)):
        texts = [line.strip() for line in window]
        wanted = [index for index, text in enumerate(texts) if any(map(str.isalpha, text))]
        translated = iter((yield [(texts[index],) for index in wanted]) if wanted else ())
        for index in wanted:
            start = window[index].index(texts[index])
            rest = window[index][start + len(texts[index]) :]
            window[index] = window[index][:start] + "".join(map(str, next(translated))) + rest
        if sink is not None:
            sink.write("".join(window).encode(encoding.codec, "replace"))


def _lines(source: BinaryIO, encoding: Encoding, limits: FileLimits) -> Iterator[str]:
    """Lines with their ends. Only LF, CRLF and CR end one: what else counts as a line break is text."""
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
        rest += chunk
        # The last piece may go on, and a CR at its end may be half a CRLF.
        *lines, rest = _split(rest)
        yield from lines
        if len(rest) > limits.max_part_bytes:
            raise InvalidDocument(f"a line has more than {limits.max_part_bytes} characters")
    if rest:
        yield rest


def _split(text: str) -> list[str]:
    """Lines with their ends, and what remains behind the last LF."""
    *lines, rest = text.split("\n")
    return [line + "\n" for line in lines] + [rest]
