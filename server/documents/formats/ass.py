"""SubStation Alpha subtitles (.ass, .ssa): the text of every dialogue. All other lines, fields and tags stay."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

from server.documents.fragment import Rewrite
from server.documents.input.encoding import read_text
from server.documents.input.limits import FileLimits
from server.documents.markup.cues import CueMarkup, Line, lines_of, raw
from server.documents.markup.item_rewriting import rewritten
from server.documents.markup.items import Item, Kind
from server.interface.errors import InvalidDocument

_TAG = re.compile(r"(\{[^{}\n]*\})")
_HARD_SPACE, _NO_BREAK_SPACE = "\\h", "\xa0"
_BREAK = re.compile(r"(\\[Nn])")
_MARKUP = CueMarkup(
    _TAG,
    read=lambda text: text.replace(_HARD_SPACE, _NO_BREAK_SPACE),
    write=lambda text: text.replace(_NO_BREAK_SPACE, _HARD_SPACE),
)
_DIALOGUE, _FORMAT, _EVENTS = "dialogue:", "format:", "[events]"
_TEXT_FIELD = "text"
_DEFAULT_FIELDS = 10
_MAX_BYTES = 5_000_000


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits, encoding: str | None = None) -> Rewrite:
    """Rewrite one paragraph a dialogue line. Its line breaks (`\\N`) are kept."""
    limits = replace(limits, max_part_bytes=min(limits.max_part_bytes, _MAX_BYTES))
    text, found = read_text(source, limits, encoding)
    items = _file_items(lines_of(text))
    is_held = limits.holds(len(text))
    written = yield from rewritten(items, lambda _: _MARKUP.write, _MARKUP.wrapped, is_held=is_held)
    if sink is not None:
        sink.write(found.encode(written))


def _file_items(lines: Sequence[Line]) -> Iterator[Item]:
    section = ""
    num_fields = _DEFAULT_FIELDS
    has_section = False
    for number, line in enumerate(lines, start=1):
        begin = line.text.strip().lower()
        if begin.startswith("["):
            section, has_section = begin, True
        elif section == _EVENTS and begin.startswith(_FORMAT):
            fields = [field.strip() for field in begin.removeprefix(_FORMAT).split(",")]
            if fields[-1] != _TEXT_FIELD:
                raise InvalidDocument(f"invalid subtitles: the last field in line {number} must be Text")
            num_fields = len(fields)
        elif section == _EVENTS and begin.startswith(_DIALOGUE):
            yield from _dialogue_items(line, num_fields, number)
            continue
        elif not has_section and not line.is_blank and not begin.startswith((";", "!")):
            raise InvalidDocument(f"invalid subtitles: line {number} must be in a section such as [Events]")
        yield Item(Kind.BREAK, raw([line]))


def _dialogue_items(line: Line, num_fields: int, number: int) -> Iterator[Item]:
    *fields, text = line.text.split(",", num_fields - 1)
    if len(fields) != num_fields - 1:
        raise InvalidDocument(
            f"invalid subtitles: line {number} must have {num_fields} fields. Given: {len(fields) + 1}"
        )
    yield Item(Kind.BREAK, line.text[: len(line.text) - len(text)])
    yield from _MARKUP.items(lines_of(text, _BREAK), number)
    yield Item(Kind.BREAK, line.end)
