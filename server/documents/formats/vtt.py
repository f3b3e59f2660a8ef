"""WebVTT subtitles: the text of every cue. Header, notes, styles, regions, identifiers, times and settings stay."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import BinaryIO

from server.documents.fragment import Rewrite
from server.documents.input.encoding import read_text
from server.documents.input.limits import FileLimits
from server.documents.markup.cues import CueMarkup, Line, lines_of, raw
from server.documents.markup.item_rewriting import rewritten
from server.documents.markup.items import Item, Kind
from server.interface.errors import InvalidDocument

_TIME = r"(?:[0-9]++:)?[0-9]++:[0-9]++\.[0-9]++"
_TIMES = re.compile(rf"\s*+{_TIME}\s++-->\s++{_TIME}(?:\s|\Z)")
# Tags of https://www.w3.org/TR/webvtt1/#webvtt-cue-text-tokenizer, which players ignore if they do not have them, such
# as <font> from SubRip; times inside a cue stand for themselves.
_TAG = re.compile(r"(</?[A-Za-z][A-Za-z0-9]*(?:[. \t][^<>\n]*)?/?>|</>|<[0-9][0-9:.]*>)")
_MARKUP = CueMarkup(_TAG, tuple(f"<{digit}" for digit in range(10)), html.unescape, partial(html.escape, quote=False))
_SIGNATURE = "WEBVTT"
_MAX_BYTES = 5_000_000


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, encoding: str | None = None) -> Rewrite:
    """Rewrite one paragraph a cue, or one a line in a dialogue. Translations get as many lines as their source."""
    limits = replace(limits, max_part_bytes=min(limits.max_part_bytes, _MAX_BYTES))
    text, found = read_text(source, limits, encoding)
    items = _file_items(lines_of(text))
    is_held = limits.holds(len(text))
    written = yield from rewritten(items, lambda _: _MARKUP.write, _MARKUP.wrapped, is_held=is_held)
    if sink is not None:
        sink.write(found.encode(written))


def _file_items(lines: Sequence[Line]) -> Iterator[Item]:
    """Yield the file as items: everything but the text of cues is a break. A blank line ends a cue."""
    if any(not line.is_blank for line in lines) and lines[0].text.split()[:1] != [_SIGNATURE]:
        raise InvalidDocument(f"invalid WebVTT: line 1 must begin with {_SIGNATURE}. Given: {lines[0].text[:20]!r}")
    index = 0
    while index < len(lines):
        end = index
        while end < len(lines) and not lines[end].is_blank:
            end += 1
        # The times are in the first or the second line of a block; other blocks have no text.
        times = next((at for at in range(index, min(index + 2, end)) if _TIMES.match(lines[at].text)), None)
        if times is not None:
            yield Item(Kind.BREAK, raw(lines[index : times + 1]))
            yield from _MARKUP.items(lines[times + 1 : end], times + 2)
            index = end
        while end < len(lines) and lines[end].is_blank:
            end += 1
        yield Item(Kind.BREAK, raw(lines[index:end]))
        index = end
