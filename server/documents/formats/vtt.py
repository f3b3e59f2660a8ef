"""WebVTT subtitles: the text of every cue. Header, notes, styles, regions, identifiers, times and settings stay."""

import html
import re
from collections.abc import Iterator, Sequence
from functools import partial

from server.documents.markup.cues import CueMarkup, Line, cue_head, raw, rewrite_captions
from server.documents.markup.items import Item, Kind
from server.interface.errors import InvalidDocument

_TIME = r"(?:[0-9]++:)?[0-9]++:[0-9]++[.,][0-9]++"
_TIMES = re.compile(rf"\s*+({_TIME})\s*+-->\s*+({_TIME})(\s.*+|\Z)")
_NUMBER = re.compile(r"\s*+[0-9]++\s*+")
# Tags of https://www.w3.org/TR/webvtt1/#webvtt-cue-text-tokenizer, which players ignore if they do not have them, such
# as <font> from SubRip; times inside a cue; the positions of SubStation Alpha that converters of SubRip leave: {\an8}.
_TAG = re.compile(r"(</?[A-Za-z][A-Za-z0-9]*(?:[. \t][^<>\n]*)?/?>|</>|<[0-9][0-9:.]*>|\{\\[^{}\n]*\})")
_MARKUP = CueMarkup(_TAG, html.unescape, partial(html.escape, quote=False))
_SIGNATURE = "WEBVTT"


def _file_items(lines: Sequence[Line]) -> Iterator[Item]:
    """Yield the file as items: everything but the text of cues is a break."""
    if any(not line.is_blank for line in lines) and lines[0].text.split()[:1] != [_SIGNATURE]:
        raise InvalidDocument(f"invalid WebVTT: line 1 must begin with {_SIGNATURE}. Given: {lines[0].text[:20]!r}")
    position, text_begin = 0, None
    for index, line in enumerate([*lines, Line("", "")]):
        times = _TIMES.match(line.text)
        # Only an empty line ends a cue, or the times of the next one, maybe with a number: other white space is text.
        if text_begin is not None and (times or not line.text):
            position = index - (
                times is not None and index > text_begin and _NUMBER.fullmatch(lines[index - 1].text) is not None
            )
            yield from _MARKUP.items(lines[text_begin:position], text_begin + 1)
            text_begin = None
        if times is not None:  # in front of them, an identifier, or all of the header
            yield cue_head(raw(lines[position : index + 1]), *times.groups())
            position = text_begin = index + 1
    yield Item(Kind.BREAK, raw(lines[position:]))


rewrite = partial(rewrite_captions, _file_items, _MARKUP)
