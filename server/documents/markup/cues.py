"""Cues of subtitles as items: lines, tags and speakers; translations get the lines of their source."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import regex

from server.documents.markup.html_elements import name_in_text
from server.documents.markup.items import Cue, Item, Kind
from server.documents.markup.line_wrapping import wrap_like
from server.documents.markup.units import Unit
from server.interface.errors import InvalidDocument
from server.text.captions import LEAD, is_end

_LINE_END = re.compile(r"(\r\n|\n|\r)")
_MAX_CUE_CHARACTERS = 30_000
_MAX_DEPTH = 64  # of tags in each other
_NUMBER, _FRACTION = re.compile("[0-9]++"), re.compile(r"[0-9][,.，．。][0-9]++[^0-9]*\Z")
_MAX_DIGITS = 6  # of hours, minutes or seconds

# Of SubStation Alpha, which players of SubRip support too: {\i1} … {\i0}, {\c&H0000FF&} … {\c}, and {\r} for all.
_OVERRIDE = regex.compile(r"\\(fn|r|[1-4]?[a-z]+)([^\\{}]*+)", regex.IGNORECASE)
_SWITCHES, _RESET_ALL = ("b", "i", "p", "s", "u"), "r"
_DRAWING = regex.compile(r"\{[^{}]*\\p(\d)")  # switches between text and shapes
_ELEMENT = regex.compile(r"<([a-z]++)[.\s>]")
_VOICE = regex.compile(r"</?v[.\s>]")  # a speaker of WebVTT
TIME = regex.compile(r"<\d[\d:.]*+>|\{\\k[^{}]*+\}", regex.IGNORECASE)  # inside a cue, one after the other


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


def cue_head(head: str, start: str, end: str, place: str) -> Item:
    """Return all that stands in front of the text of a cue, with its times: hours, minutes, seconds, fractions."""
    return Item(Kind.BREAK, head, cue=Cue(_seconds(start), _seconds(end), place.strip()))


def _seconds(time: str) -> float:
    """Return a time such as `1:02:03.5` in seconds. With four numbers or behind a comma, the last is a fraction."""
    numbers = [number[:_MAX_DIGITS] for number in _NUMBER.findall(time)]
    has_fraction = len(numbers) > 3 or _FRACTION.search(time) is not None
    fraction = float(f"0.{numbers.pop()}") if has_fraction else 0.0
    return fraction + sum(float(number) * (1, 60, 3600)[power] for power, number in enumerate(reversed(numbers[:3])))


class CueMarkup:
    """Markup inside the cues of a format. `tag` has one group around all of it.

    `read` and `write` translate between a text and its form in a file, where `line_break` divides lines.
    """

    def __init__(
        self,
        tag: re.Pattern[str],
        read: Callable[[str], str] = str,
        write: Callable[[str], str] = str,
        line_break: str = "\n",
    ) -> None:
        self._tag = tag
        self._read = read
        self.write = write
        self.line_break = line_break

    def items(self, lines: Sequence[Line], number: int) -> Iterator[Item]:
        """Yield the lines of a cue as items; `number` is that of its first line, for errors.

        Lines are one sentence unless a line ends one, or the next begins with a speaker.
        """
        if (num_characters := len(raw(lines))) > _MAX_CUE_CHARACTERS:
            raise InvalidDocument(
                f"a cue may have {_MAX_CUE_CHARACTERS} characters. The cue in line {number} has {num_characters}"
            )
        items = list(self._items_of_lines(lines))
        texts = ["".join(item.text for item in line if item.kind is Kind.TEXT).strip() for line in items]
        if not any(any(map(str.isalpha, text)) for text in texts):
            yield Item(Kind.BREAK, raw(lines))  # a file may have nothing else
            return
        are_apart = [*(is_end(text, following) for text, following in pairwise(texts)), True]
        depth, begins = 0, True
        for line, its_items, is_apart in zip(lines, items, are_apart, strict=True):
            if line.is_blank:
                yield Item(Kind.BREAK, line.text + line.end)
                begins = True
                continue
            text = line.text.strip()
            start = line.text.index(text)
            if start:
                yield Item(Kind.TEXT, line.text[:start])
            for item in self._without_lead(its_items) if begins else its_items:
                depth = max(0, depth + (item.kind is Kind.OPEN) - (item.kind is Kind.CLOSE))
                if depth > _MAX_DEPTH:
                    raise InvalidDocument(
                        f"tags of a cue may be nested {_MAX_DEPTH} deep. The cue in line {number} has more"
                    )
                yield item
            yield Item(Kind.BREAK if is_apart else Kind.TEXT, line.text[start + len(text) :] + line.end, " ")
            begins = is_apart

    def wrapped(self, unit: Unit, written: str, line_break: str = "", max_characters: int = 0) -> str:
        """Divide a translation into as many lines as its source, of similar lengths. Times stay in their order.

        A source of one line gets a second one with a `line_break` if it has more than `max_characters`.
        """
        times = iter([item.raw for item in unit.items if item.kind is Kind.ATOM and TIME.fullmatch(item.raw)])
        written = TIME.sub(lambda time: next(times, time[0]), written)
        breaks = [
            item.raw for item in unit.items if item.kind is Kind.TEXT and item.text == " " and item.raw.strip(" ")
        ]
        if not breaks and line_break and len(self._read(self._tag.sub("", written))) > max_characters:
            return wrap_like(self._words(written), [1, 1], [line_break], self._may_begin)
        if not breaks:
            return written
        lengths = [0]
        for item in unit.items:
            if item.kind is Kind.TEXT and item.text == " " and item.raw.strip(" "):
                lengths.append(0)
            else:
                lengths[-1] += len(item.text)
        return wrap_like(self._words(written), lengths, breaks, self._may_begin)

    def _may_begin(self, word: str) -> bool:
        return not LEAD.match(self._tag.sub("", word))

    def _items_of_lines(self, lines: Sequence[Line]) -> Iterator[list[Item]]:
        """Yield the items of each line, without the white space at its ends."""
        pieces = [self._tag.split(line.text.strip()) for line in lines]
        kinds = iter(_kinds([tag for line in pieces for tag in line[1::2]]))
        is_drawing = False
        for line in pieces:
            items: list[Item] = []
            for index, piece in enumerate(line):
                if index % 2:
                    element = _ELEMENT.match(piece)
                    items.append(Item(next(kinds), piece, name=name_in_text(element[1]) if element else ""))
                    switch = _DRAWING.match(piece)
                    is_drawing = is_drawing if switch is None else switch[1] != "0"
                elif piece and is_drawing:
                    items.append(Item(Kind.BREAK, piece))
                elif piece:
                    items.append(Item(Kind.TEXT, piece, self._read(piece)))
            yield _without_marks_in_words(items)

    def _without_lead(self, items: Sequence[Item]) -> Iterator[Item]:
        """Yield the items of a line with the marks in front of a speaker's words as breaks."""
        begins = True
        for item in items:
            if not begins or item.kind is not Kind.TEXT:
                yield item
                continue
            lead = LEAD.match(item.raw)
            words = item.raw if lead is None else item.raw[lead.end() :]
            if lead is not None:
                yield Item(Kind.BREAK, lead[0])
            if words:
                yield item if lead is None else Item(Kind.TEXT, words, self._read(words))
                begins = False

    def _words(self, written: str) -> list[str]:
        """Return the words between which a line may end: not at a space inside a tag."""
        words = [""]
        for index, piece in enumerate(self._tag.split(written)):
            first, *others = [piece] if index % 2 else piece.split(" ")
            words[-1] += first
            words += others
        return words


def _without_marks_in_words(items: Sequence[Item]) -> list[Item]:
    """Return the items with atoms inside a word, such as the times of syllables, as marks that leave the word whole."""
    texts = [item.text if item.kind is Kind.TEXT else "" for item in items]
    before = list(accumulate(texts, _latest))
    behind = list(accumulate(reversed(texts), _latest))[::-1]
    return [
        item._replace(kind=Kind.MARK)
        if item.kind is Kind.ATOM and left[-1:].isalnum() and right[:1].isalnum()
        else item
        for item, left, right in zip(items, before, behind, strict=True)
    ]


def _latest(last: str, text: str) -> str:
    return text or last


def _kinds(tags: Sequence[str]) -> list[Kind]:
    """Return the kinds of the tags of a cue. An override goes to the tag that takes it back, or stands for itself."""
    kinds: list[Kind] = []
    opened: list[tuple[int, set[str]]] = []
    for index, tag in enumerate(tags):
        kinds.append(_kind(tag))
        overrides = {name.lower(): value.strip() for name, value in _OVERRIDE.findall(tag)}
        reset = {name for name, value in overrides.items() if not value or (value == "0" and name in _SWITCHES)}
        if overrides and not reset:
            opened = [*opened[-_MAX_DEPTH:], (index, set(overrides))]
        elif overrides and len(reset) == len(overrides):
            for place in reversed(range(len(opened))):
                first, names = opened[place]
                if names <= reset or _RESET_ALL in reset:
                    kinds[first], kinds[index] = Kind.OPEN, Kind.CLOSE
                    del opened[place:]
                    break
    return kinds


def _kind(tag: str) -> Kind:
    if tag.startswith("{") or TIME.fullmatch(tag):
        return Kind.ATOM
    if _VOICE.match(tag):
        return Kind.BREAK
    return Kind.CLOSE if tag.startswith("</") else Kind.OPEN
