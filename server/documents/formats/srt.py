"""SubRip subtitles: the text of every cue; numbers, times and what follows the times stay."""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from server.documents.markup.cues import CueMarkup, Line, cue_head, raw, rewrite_captions
from server.documents.markup.items import Item, Kind
from server.interface.errors import InvalidDocument

# Possessive quantifiers: every line is read once, whatever it contains.
_TIME = r"[0-9]++(?:[,.:，．。：][0-9]++){2}[,.:，．。：]?+[0-9]*+"
_TIMES = re.compile(rf"\s*+({_TIME}) *+-[- ]*+> *+({_TIME})(.*+)")
_BEGINS_WITH_TIME = re.compile(rf"\s*+{_TIME}")
_NUMBER = re.compile(r"\s*+-?+[0-9]++\.?+[0-9]*+\s*+")
# SubRip's tags, and the positions of SubStation Alpha that players also support: {\an8}.
_TAG = re.compile(r"(</?(?:b|i|u|s|font)(?: [^<>\n]*)?>|\{\\[^{}\n]*\})", re.IGNORECASE)
_MARKUP = CueMarkup(_TAG)


def _file_items(lines: Sequence[Line]) -> Iterator[Item]:
    """Yield the file as items: everything but the text of cues is a break."""
    heads = _heads(lines)
    begin = heads[0][0] if heads else len(lines)
    for number, line in enumerate(lines[:begin], start=1):
        if not line.is_blank:
            raise InvalidDocument(f"invalid SRT: line {number} must follow a line of the form `start --> end`")
    yield Item(Kind.BREAK, raw(lines[:begin]))
    for index, (begin, text_begin) in enumerate(heads):
        next_begin = heads[index + 1][0] if index + 1 < len(heads) else len(lines)
        text_end = next_begin
        while text_end > text_begin and lines[text_end - 1].is_blank:
            text_end -= 1
        times = _TIMES.match(lines[text_begin - 1].text)
        assert times is not None, "heads end with times"
        yield cue_head(raw(lines[begin:text_begin]), *times.groups())
        yield from _MARKUP.items(lines[text_begin:text_end], text_begin + 1)
        yield Item(Kind.BREAK, raw(lines[text_end:next_begin]))


def _heads(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """Return for each cue the line of its number, or of its times if it has none, and the first line of its text.

    Blank lines do not end a cue: some files have them inside texts, and between number and times.
    """
    heads = []
    last: int | None = None  # line that is not blank
    for index, line in enumerate(lines):
        if line.is_blank:
            continue
        is_numbered = last is not None and _NUMBER.fullmatch(lines[last].text) is not None
        if _TIMES.match(line.text):
            heads.append((last if last is not None and is_numbered else index, index + 1))
        elif is_numbered and _BEGINS_WITH_TIME.match(line.text):
            raise InvalidDocument(f"invalid SRT: line {index + 1} must have the form `start --> end`")
        last = index
    return heads


rewrite = partial(rewrite_captions, _file_items, _MARKUP)
