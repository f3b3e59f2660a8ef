"""SubRip subtitles: the text of every cue; numbers, times and what follows the times stay."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple

from server.documents.fragment import Rewrite
from server.documents.input.encoding import read_text
from server.documents.input.limits import FileLimits
from server.documents.markup.item_rewriting import rewritten
from server.documents.markup.items import Item, Kind
from server.documents.markup.line_wrapping import rewrap
from server.documents.markup.units import Unit
from server.interface.errors import InvalidDocument

# Possessive quantifiers: every line is read once, whatever it contains.
_TIME = r"[0-9]++(?:[,.:，．。：][0-9]++){2}[,.:，．。：]?+[0-9]*+"
_TIMES = re.compile(rf"\s*+{_TIME} *+-[- ]*+> *+{_TIME}")
_BEGINS_WITH_TIME = re.compile(rf"\s*+{_TIME}")
_NUMBER = re.compile(r"\s*+-?+[0-9]++\.?+[0-9]*+\s*+")
_LINE_END = re.compile(r"(\r\n|\n|\r)")
# SubRip's tags, and the positions of SubStation Alpha that players also support: {\an8}.
_TAG = re.compile(r"(</?(?:b|i|u|s|font)(?: [^<>\n]*)?>|\{\\[^{}\n]*\})", re.IGNORECASE)
_SPEAKER = ("-", "–", "—")  # begins a line of dialogue
_MAX_BYTES = 5_000_000
_MAX_CUE_CHARACTERS = 30_000
_MAX_DEPTH = 64  # of tags in each other


class _Line(NamedTuple):
    text: str
    end: str

    @property
    def is_blank(self) -> bool:
        return not self.text or self.text.isspace()


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Rewrite one paragraph a cue, or one a line in a dialogue. Translations get as many lines as their source."""
    text, encoding = read_text(source, replace(limits, max_part_bytes=min(limits.max_part_bytes, _MAX_BYTES)))
    items = _file_items(_lines(text))
    written = yield from rewritten(items, lambda _: str, _wrapped)
    if sink is not None:
        sink.write(encoding.encode(written))


def _lines(text: str) -> list[_Line]:
    *parts, last = _LINE_END.split(text)
    return [*map(_Line, parts[::2], parts[1::2]), _Line(last, "")]


def _file_items(lines: Sequence[_Line]) -> Iterator[Item]:
    """Yield the file as items: everything but the text of cues is a break."""
    heads = _heads(lines)
    begin = heads[0][0] if heads else len(lines)
    for number, line in enumerate(lines[:begin], start=1):
        if not line.is_blank:
            raise InvalidDocument(f"invalid SRT: line {number} must follow a line of the form `start --> end`")
    yield Item(Kind.BREAK, _raw(lines[:begin]))
    for index, (begin, text_begin) in enumerate(heads):
        next_begin = heads[index + 1][0] if index + 1 < len(heads) else len(lines)
        text_end = next_begin
        while text_end > text_begin and lines[text_end - 1].is_blank:
            text_end -= 1
        yield Item(Kind.BREAK, _raw(lines[begin:text_begin]))
        yield from _cue_items(lines[text_begin:text_end], text_begin + 1)
        yield Item(Kind.BREAK, _raw(lines[text_end:next_begin]))


def _heads(lines: Sequence[_Line]) -> list[tuple[int, int]]:
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


def _cue_items(lines: Sequence[_Line], number: int) -> Iterator[Item]:
    if (num_characters := len(_raw(lines))) > _MAX_CUE_CHARACTERS:
        raise InvalidDocument(
            f"a cue may have {_MAX_CUE_CHARACTERS} characters. The cue in line {number} has {num_characters}"
        )
    is_dialogue = any(line.text.lstrip().startswith(_SPEAKER) for line in lines)
    depth = 0
    for line in lines:
        text = line.text.strip()
        start = line.text.index(text)
        yield Item(Kind.TEXT, line.text[:start])
        for item in _line_items(text, is_dialogue):
            depth = max(0, depth + (item.kind is Kind.OPEN) - (item.kind is Kind.CLOSE))
            if depth > _MAX_DEPTH:
                raise InvalidDocument(
                    f"tags of a cue may be nested {_MAX_DEPTH} deep. The cue in line {number} has more"
                )
            yield item
        is_break = is_dialogue or line.is_blank
        yield Item(Kind.BREAK if is_break else Kind.TEXT, line.text[start + len(text) :] + line.end, " ")


def _line_items(line: str, is_dialogue: bool) -> Iterator[Item]:
    begins = is_dialogue
    for index, piece in enumerate(_TAG.split(line)):
        if not index % 2:
            text = piece.lstrip("-–— ") if begins else piece
            if begins:
                yield Item(Kind.BREAK, piece[: len(piece) - len(text)])
            if text:
                yield Item(Kind.TEXT, text, text)
                begins = False
        elif piece.startswith("{"):
            yield Item(Kind.MARK, piece)
        else:
            yield Item(Kind.CLOSE if piece.startswith("</") else Kind.OPEN, piece)


def _wrapped(unit: Unit, written: str) -> str:
    """Wrap a translation into about as many lines as its source."""
    raw = "".join(item.raw for item in unit.items)
    line_end = _LINE_END.search(raw)
    if line_end is None:
        return written
    lines = raw.split(line_end[0])
    width = max(len(written) // len(lines), *map(len, lines))
    return rewrap(_words(written), width, line_end[0], lambda word: _TAG.sub("", word)[:1].isalpha())


def _words(written: str) -> list[str]:
    """Return the words between which a line may end: not at a space inside a tag."""
    words = [""]
    for index, piece in enumerate(_TAG.split(written)):
        first, *others = [piece] if index % 2 else piece.split(" ")
        words[-1] += first
        words += others
    return words


def _raw(lines: Sequence[_Line]) -> str:
    return "".join(line.text + line.end for line in lines)
