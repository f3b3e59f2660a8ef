"""SubStation Alpha subtitles (.ass, .ssa): the text of every dialogue. All other lines, fields and tags stay."""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from server.documents.markup.cues import CueMarkup, Line, cue_head, lines_of, raw, rewrite_captions
from server.documents.markup.items import Item, Kind
from server.interface.errors import InvalidDocument

_TAG = re.compile(r"(\{[^{}\n]*\})")
_HARD_SPACE, _NO_BREAK_SPACE = "\\h", "\xa0"
_BREAK = re.compile(r"(\\[Nn])")
_MARKUP = CueMarkup(
    _TAG,
    read=lambda text: text.replace(_HARD_SPACE, _NO_BREAK_SPACE),
    write=lambda text: text.replace(_NO_BREAK_SPACE, _HARD_SPACE),
    line_break="\\N",
)
_DIALOGUE, _FORMAT, _EVENTS = "dialogue:", "format:", "[events]"
_TEXT_FIELD = "text"
_DEFAULT_FIELDS = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]


def _file_items(lines: Sequence[Line]) -> Iterator[Item]:
    section = ""
    names = _DEFAULT_FIELDS
    has_section = False
    for number, line in enumerate(lines, start=1):
        begin = line.text.strip().lower()
        if begin.startswith("["):
            section, has_section = begin, True
        elif section == _EVENTS and begin.startswith(_FORMAT):
            fields = [field.strip() for field in begin.removeprefix(_FORMAT).split(",")]
            if fields[-1] != _TEXT_FIELD:
                raise InvalidDocument(f"invalid subtitles: the last field in line {number} must be Text")
            names = fields
        elif section == _EVENTS and begin.startswith(_DIALOGUE):
            yield from _dialogue_items(line, names, number)
            continue
        elif not has_section and not line.is_blank and not begin.startswith((";", "!")):
            raise InvalidDocument(f"invalid subtitles: line {number} must be in a section such as [Events]")
        yield Item(Kind.BREAK, raw([line]))


def _dialogue_items(line: Line, names: Sequence[str], number: int) -> Iterator[Item]:
    *fields, text = line.text.split(",", len(names) - 1)
    if len(fields) != len(names) - 1:
        raise InvalidDocument(
            f"invalid subtitles: line {number} must have {len(names)} fields. Given: {len(fields) + 1}"
        )
    values = dict(zip(names, fields, strict=False))
    times = values.pop("start", ""), values.pop("end", "")
    yield cue_head(line.text[: len(line.text) - len(text)], *times, ",".join(values.values()))
    yield from _MARKUP.items(lines_of(text, _BREAK), number)
    yield Item(Kind.BREAK, line.end)


rewrite = partial(rewrite_captions, _file_items, _MARKUP)
