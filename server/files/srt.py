"""SubRip subtitles: the text of every cue; numbers, times and what follows the times stay."""

import re
from collections.abc import Iterator
from typing import BinaryIO

import srt

from server.errors import InvalidDocument
from server.files.archive import Rewrite
from server.files.encoding import read_text
from server.files.items import Item, Kind, Unit, rewritten
from server.files.limits import FileLimits
from server.files.refill import refill

# SubRip's own few tags, and the positions of SubStation Alpha that players also understand: {\an8}.
_TAG = re.compile(r"(</?(?:b|i|u|s|font)(?: [^<>\n]*)?>|\{\\[^{}\n]*\})", re.IGNORECASE)
_SPEAKER = ("-", "–", "—")  # begins a line of dialogue


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """One paragraph a cue; where two people talk in it, one a line. Translations get as many lines as there were."""
    text, encoding = read_text(source, limits)
    line_end = "\r\n" if "\r\n" in text else "\n"
    try:
        cues = list(srt.parse(text.replace("\r\n", "\n")))
    except (srt.SRTParseError, srt.TimestampParseError, ValueError, OverflowError) as error:
        raise InvalidDocument(f"the subtitles cannot be read: {str(error)[:200]}") from error
    if not cues and text.strip():
        raise InvalidDocument("the subtitles cannot be read: there is no cue with its times in the file")
    items = [item for cue in cues for item in [*_items(cue.content), Item(Kind.BREAK, "\0")]]
    written = yield from rewritten(items, lambda _, translated: translated, _filled)
    contents = written.split("\0")
    for cue, content in zip(cues, contents, strict=False):
        cue.content = content
    if sink is not None:
        composed = srt.compose(cues, reindex=False, strict=False, eol=line_end)
        blank = line_end if text.endswith(2 * line_end) else ""
        sink.write(encoding.encode(composed.rstrip("\r\n") + line_end + blank if composed else text))


def _items(content: str) -> Iterator[Item]:
    is_dialogue = any(line.lstrip().startswith(_SPEAKER) for line in content.split("\n"))
    for index, piece in enumerate(_TAG.split(content.replace("\0", ""))):
        if not index % 2:
            for number, line in enumerate(piece.split("\n")):
                if number:
                    yield Item(Kind.BREAK, "\n") if is_dialogue else Item(Kind.TEXT, "\n", " ")
                if line:
                    dash = line[: len(line) - len(line.lstrip("-–— "))] if is_dialogue else ""
                    yield Item(Kind.BREAK, dash)
                    yield Item(Kind.TEXT, line[len(dash) :], line[len(dash) :])
        elif piece.startswith("{"):
            yield Item(Kind.MARK, piece)
        else:
            yield Item(Kind.CLOSE if piece.startswith("</") else Kind.OPEN, piece)


def _filled(unit: Unit, written: str) -> str:
    """A translation in about as many lines as its source."""
    lines = "".join(item.raw for item in unit.items).split("\n")
    if len(lines) == 1:
        return written
    return refill(written, max(len(written) // len(lines), *map(len, lines)), "\n")
