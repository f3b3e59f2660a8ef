"""MicroDVD and SubViewer subtitles (.sub): the text of every cue. Frames, times, headers and tags stay."""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from server.documents.markup.cues import CueMarkup, Line, cue_head, lines_of, raw, rewrite_captions
from server.documents.markup.items import Item, Kind
from server.interface.errors import InvalidDocument

_FRAMES = re.compile(r"\s*+\{([0-9]{1,9}+)\}\{([0-9]{0,9}+)\}")
_RATE = re.compile(r"\s*+([0-9]{1,3}+(?:[.,][0-9]++)?+)\s*+")  # of the frames, as the text of the first cue
_USUAL_RATE = 25.0
_TIME = r"[0-9]++:[0-9]++:[0-9]++[.,][0-9]++"
_TIMES = re.compile(rf"\s*+({_TIME})\s*+,\s*+({_TIME})\s*+")
_TAG = re.compile(r"(\{[A-Za-z]:[^{}\n]*\}|^/)")  # {y:i}, or a slash in front of a line in italics
_BAR, _BR = re.compile(r"(\|)"), re.compile(r"(\[br\]|\r\n|\n|\r)", re.IGNORECASE)
_MARKUP = CueMarkup(_TAG, line_break="|")


def _file_items(lines: Sequence[Line]) -> Iterator[Item]:
    """Yield the file as items: everything but the text of cues is a break."""
    begun = next((index for index, line in enumerate(lines) if _FRAMES.match(line.text)), len(lines))
    if all(line.is_blank for line in lines[:begun]):
        return _items_by_frames(lines)
    return _items_by_times(lines)


def _items_by_frames(lines: Sequence[Line]) -> Iterator[Item]:
    """Yield the items of MicroDVD: `{first frame}{last frame}text|second line`."""
    rate = 0.0
    for number, line in enumerate(lines, start=1):
        head = _FRAMES.match(line.text)
        if head is None:
            if not line.is_blank:
                raise InvalidDocument(f"invalid MicroDVD: line {number} must begin with {{first frame}}{{last frame}}")
            yield Item(Kind.BREAK, raw([line]))
            continue
        text = line.text[head.end() :]
        if not rate:
            declared = _RATE.fullmatch(text)
            rate = float(declared[1].replace(",", ".")) or _USUAL_RATE if declared is not None else _USUAL_RATE
        first, last = (f"{int(frame or head[1]) / rate:.3f}" for frame in head.groups())
        yield cue_head(head[0], first, last, "")
        yield from _MARKUP.items(lines_of(text, _BAR), number)
        yield Item(Kind.BREAK, line.end)


def _items_by_times(lines: Sequence[Line]) -> Iterator[Item]:
    """Yield the items of SubViewer: `start,end`, and lines up to an empty one, behind a header."""
    heads = [index for index, line in enumerate(lines) if _TIMES.fullmatch(line.text)]
    if not heads:
        raise InvalidDocument(
            "this file is neither MicroDVD nor SubViewer: it has no `{frame}{frame}` and no `start,end`"
        )
    yield Item(Kind.BREAK, raw(lines[: heads[0]]))
    for head, following in zip(heads, [*heads[1:], len(lines)], strict=True):
        times = _TIMES.fullmatch(lines[head].text)
        assert times is not None, "a head has times"
        end = next((index for index in range(head + 1, following) if lines[index].is_blank), following)
        yield cue_head(raw([lines[head]]), times[1], times[2], "")
        yield from _MARKUP.items(lines_of(raw(lines[head + 1 : end]), _BR), head + 2)
        yield Item(Kind.BREAK, raw(lines[end:following]))


rewrite = partial(rewrite_captions, _file_items, _MARKUP)
