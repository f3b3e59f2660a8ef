"""Cues of subtitles as items: lines, tags and dialogues; translations get the lines of their source."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from server.documents.markup.items import Item, Kind
from server.documents.markup.line_wrapping import wrap_like
from server.documents.markup.units import Unit
from server.interface.errors import InvalidDocument

_LINE_END = re.compile(r"(\r\n|\n|\r)")
_SPEAKER = ("-", "–", "—")  # begins a line of dialogue
_MAX_CUE_CHARACTERS = 30_000
_MAX_DEPTH = 64  # of tags in each other


class Line(NamedTuple):
    """A line and its end."""

    text: str
    end: str

    @property
    def is_blank(self) -> bool:
        """Whether it has nothing but white space."""
        return not self.text or self.text.isspace()


def lines_of(text: str, line_end: re.Pattern[str] = _LINE_END) -> list[Line]:
    """Return the lines of a text. `line_end` has one group around all of it."""
    *parts, last = line_end.split(text)
    return [*map(Line, parts[::2], parts[1::2]), Line(last, "")]


def raw(lines: Sequence[Line]) -> str:
    """Return the lines as they are written."""
    return "".join(line.text + line.end for line in lines)


class CueMarkup:
    """Markup inside the cues of a format. `tag` has one group around all of it; it matches marks, too.

    `marks` are the beginnings of tags that stand for themselves. `read` and `write` translate between a text and its
    form in a file.
    """

    def __init__(
        self,
        tag: re.Pattern[str],
        marks: tuple[str, ...],
        read: Callable[[str], str] = str,
        write: Callable[[str], str] = str,
    ) -> None:
        self._tag = tag
        self._marks = marks
        self._read = read
        self.write = write

    def items(self, lines: Sequence[Line], number: int) -> Iterator[Item]:
        """Yield the lines of a cue as items; `number` is that of its first line, for errors."""
        if (num_characters := len(raw(lines))) > _MAX_CUE_CHARACTERS:
            raise InvalidDocument(
                f"a cue may have {_MAX_CUE_CHARACTERS} characters. The cue in line {number} has {num_characters}"
            )
        if not any(any(map(str.isalpha, self._read(self._tag.sub("", line.text)))) for line in lines):
            yield Item(Kind.BREAK, raw(lines))  # a file may have nothing else
            return
        is_dialogue = any(line.text.lstrip().startswith(_SPEAKER) for line in lines)
        depth = 0
        for line in lines:
            if line.is_blank:
                yield Item(Kind.BREAK, line.text + line.end)
                continue
            text = line.text.strip()
            start = line.text.index(text)
            if start:
                yield Item(Kind.TEXT, line.text[:start])
            for item in self._line_items(text, is_dialogue):
                depth = max(0, depth + (item.kind is Kind.OPEN) - (item.kind is Kind.CLOSE))
                if depth > _MAX_DEPTH:
                    raise InvalidDocument(
                        f"tags of a cue may be nested {_MAX_DEPTH} deep. The cue in line {number} has more"
                    )
                yield item
            yield Item(Kind.BREAK if is_dialogue else Kind.TEXT, line.text[start + len(text) :] + line.end, " ")

    def wrapped(self, unit: Unit, written: str) -> str:
        """Divide a translation into as many lines as its source, of similar lengths."""
        breaks = [
            item.raw for item in unit.items if item.kind is Kind.TEXT and item.text == " " and item.raw.strip(" ")
        ]
        if not breaks:
            return written
        lengths = [0]
        for item in unit.items:
            if item.kind is Kind.TEXT and item.text == " " and item.raw.strip(" "):
                lengths.append(0)
            else:
                lengths[-1] += len(item.text)
        return wrap_like(self._words(written), lengths, breaks, lambda word: self._tag.sub("", word)[:1].isalpha())

    def _line_items(self, line: str, is_dialogue: bool) -> Iterator[Item]:
        begins = is_dialogue
        for index, piece in enumerate(self._tag.split(line)):
            if not index % 2:
                text = piece.lstrip("-–— ") if begins else piece
                if begins:
                    yield Item(Kind.BREAK, piece[: len(piece) - len(text)])
                if text:
                    yield Item(Kind.TEXT, text, self._read(text))
                    begins = False
            elif piece.startswith(self._marks):
                yield Item(Kind.MARK, piece)
            else:
                yield Item(Kind.CLOSE if piece.startswith("</") else Kind.OPEN, piece)

    def _words(self, written: str) -> list[str]:
        """Return the words between which a line may end: not at a space inside a tag."""
        words = [""]
        for index, piece in enumerate(self._tag.split(written)):
            first, *others = [piece] if index % 2 else piece.split(" ")
            words[-1] += first
            words += others
        return words
