"""Cues of subtitles: their lines, tags and speakers as items, and sentences that run over several of them.

A sentence is translated as one text, and its translation divided into the same cues again, each with as many lines as
its source.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import BinaryIO, NamedTuple

import regex

from server.documents.formats.options import READING_SPEED
from server.documents.fragment import (
    Atom,
    CountedRewrite,
    DocumentCounts,
    Fragment,
    Inline,
    as_window,
    joined,
    num_characters,
    texts_in,
)
from server.documents.input.encoding import read_text
from server.documents.input.limits import FileLimits
from server.documents.markup.html_elements import name_in_text
from server.documents.markup.items import Cue, Item, Kind, Unit, rewritten
from server.documents.markup.line_wrapping import wrap_like
from server.interface.errors import InvalidDocument
from server.text.captions import LEAD, Caption, ReadingLimits, cuts, divider, hyphen, is_end, joined_captions
from server.text.readers.units import DIVIDER

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
        """Whether it has nothing that a viewer sees."""
        return all(character.isspace() or not character.isprintable() for character in self.text)


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
        breaks = [item.raw for item in unit.items if item.kind is Kind.TEXT and _is_line_end(item)]
        if not breaks and line_break and len(self._read(self._tag.sub("", written))) > max_characters:
            return wrap_like(self._words(written), [1, 1], [line_break], self._may_begin)
        if not breaks:
            return written
        lengths = [0]
        for item in unit.items:
            if item.kind is Kind.TEXT and _is_line_end(item):
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


def _is_line_end(item: Item) -> bool:
    return item.text == " " and (item.kind is Kind.BREAK or bool(item.raw.strip(" ")))


def _rolled_apart(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items with a break behind lines that roll up: the last ones of a cue, shown again at the top of the next.

    Automatic captions are so. Each line is then a text of its own, in both cues.
    """
    before: list[Item] = []
    for cue in _by_head(items):
        first, second = _shown_lines(before), _shown_lines(cue)
        num_rolled = _num_rolled([*first.values()], [*second.values()])
        if 0 < num_rolled < len(first):
            _divide(before, [*first][-num_rolled - 1])
        for line_end, other in zip([*first][len(first) - num_rolled :], second, strict=False):
            if before[line_end].kind is Kind.BREAK:
                _divide(cue, other)
        yield from before
        before = cue
    yield from before


def _by_head(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield the items of each cue, and those in front of the first."""
    cue: list[Item] = []
    for item in items:
        if item.cue is not None:
            yield cue
            cue = []
        cue.append(item)
    yield cue


def _shown_lines(cue: Sequence[Item]) -> dict[int, str]:
    """Return the texts of the lines of a cue by the indexes of their ends."""
    lines: dict[int, str] = {}
    line = ""
    for index, item in enumerate(cue):
        if _is_line_end(item):
            lines[index] = line
            line = ""
        elif item.kind is Kind.TEXT:
            line += item.text
    return lines


def _divide(cue: list[Item], line_end: int) -> None:
    cue[line_end] = cue[line_end]._replace(kind=Kind.BREAK)


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


_MAX_BYTES = 5_000_000
_MAX_GAP_SECONDS = 1.2  # in which a sentence goes on
_LINE_BREAK = regex.compile(r"(?:\r\n|\n|\r)\Z")
_NOT_A_START = regex.compile(r"[\s\p{Lo}]")  # a caption may begin behind the one, and in front of the other

# Reads the lines of a file as items, in which a break with a `cue` is in front of each caption.
FileItems = Callable[[Sequence[Line]], Iterator[Item]]


def rewrite_captions(
    file_items: FileItems,
    markup: CueMarkup,
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    encoding: str | None = None,
    language: str | None = None,
    join_captions: bool = True,
    reading_speed: float = READING_SPEED,
) -> CountedRewrite:
    """Rewrite the captions of a file; `language` is that of the translation, `reading_speed` in characters a second.

    Translations get as many lines as their source.
    """
    limits = replace(limits, max_part_bytes=min(limits.max_part_bytes, _MAX_BYTES))
    text, found = read_text(source, limits, encoding)
    cues = _Cues(markup, ReadingLimits(characters_per_second=reading_speed), language or "", joins=join_captions)
    items = _rolled_apart(file_items(lines_of(text)))
    is_held = limits.holds(len(text))
    written = yield from rewritten(items, lambda _: markup.write, cues.finished, cues.translated, is_held=is_held)
    if sink is not None:
        sink.write(found.encode(written))
    return DocumentCounts(**cues.counts)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a unit stands: in the cue whose head is the item with this index, and what is around its words there."""

    head: int
    cue: Cue
    styles: tuple[str, ...]  # tags, such as the name of a speaker
    follows: bool  # it is the first of its cue, and nothing else is between it and the last unit of the cue before
    is_next: bool  # behind the last unit, in its cue or not, without words or the mark of a speaker between them
    has_times: bool  # of its words, or syllables


class _Cues:
    """The cues of one file."""

    def __init__(self, markup: CueMarkup, limits: ReadingLimits, language: str, *, joins: bool) -> None:
        self._markup = markup
        self._limits = limits
        self._language = language
        self._joins = joins
        self._second_lines: dict[int, str] = {}  # line breaks of captions that may have two lines, by the ids of units
        self.counts = Counter[str]()

    def translated(
        self, units: Sequence[Unit], is_held: bool
    ) -> Generator[list[Fragment], list[Fragment], Sequence[Fragment]]:
        """Yield the texts of units, those of one sentence joined, and return the translation of each unit."""
        self._second_lines = {}  # ids are those of other units in each window
        places = list(_places(units))
        texts = [" ".join(_visible(unit.fragment).split()) for unit in units]
        repeated = _repeated(units, places, texts)
        new = [index for index in range(len(units)) if index not in repeated]
        groups = [[index] for index in new]
        if self._joins:
            may_join = [_goes_on(places, repeated, index) for index in new[1:]]
            joins = joined_captions([texts[index] for index in new], may_join)
            groups = [new[group.start : group.stop] for group in joins]
        fragments = [_joined([units[index] for index in group], [texts[index] for index in group]) for group in groups]
        translations = yield as_window(fragments, is_held=is_held)
        characters = _by_cue(places, map(len, texts))
        num_units = _by_cue(places, [1] * len(units))
        by_unit: dict[int, Fragment] = {}
        for group, fragment, translation in zip(groups, fragments, translations, strict=True):
            if len(group) == 1:
                by_unit[group[0]] = translation
                continue
            self.counts["captions_joined"] += len(group)
            if translation == fragment:
                by_unit |= {index: units[index].fragment for index in group}
                continue
            captions = [_caption(places[index], len(texts[index]), characters) for index in group]
            by_unit |= zip(group, self._divided(translation, captions), strict=True)
            for index in group:
                if (place := places[index]) is not None and num_units[place.head] == 1:
                    self._second_lines[id(units[index])] = self._line_break(units[index].layer[place.head].raw)
        for index, first in repeated.items():  # in order: what is repeated may be a repetition itself
            is_changed = by_unit[first] != units[first].fragment
            by_unit[index] = (_visible(by_unit[first]),) if is_changed else units[index].fragment
        results = [by_unit[index] for index in range(len(units))]
        speed = self._limits.characters_per_second
        for head, length in _by_cue(places, map(num_characters, results)).items():
            cue = units[0].layer[head].cue
            self.counts["captions_too_fast"] += cue is not None and 0 < speed * (cue.end - cue.start) < length
        return results

    def finished(self, unit: Unit, written: str) -> str:
        """Return the translation of a unit in as many lines as its source, or in two if it is too long for one."""
        line_break = self._second_lines.get(id(unit), "")
        return self._markup.wrapped(unit, written, line_break, self._limits.line_characters)

    def _divided(self, translation: Fragment, captions: Sequence[Caption]) -> list[Fragment]:
        # Elements stay whole: no caption begins inside one.
        shown = [node if isinstance(node, str) else _NOT_A_START.sub("x", _visible((node,))) for node in translation]
        nodes = [node.replace(DIVIDER, "") if isinstance(node, str) else node for node in translation]
        places = cuts("".join(shown), captions, self._language, self._limits)
        self.counts["caption_cuts"] += len(places)
        pieces = _split(nodes, [len(text.replace(DIVIDER, "")) for text in shown], places)
        plain = "".join(shown).replace(DIVIDER, "")
        for index, place in enumerate(places):
            if (mark := hyphen(plain, place)) and _visible(pieces[index]) and _visible(pieces[index + 1]):
                pieces[index] = joined([*pieces[index], mark])
        return _filled(pieces)

    def _line_break(self, head: str) -> str:
        match = _LINE_BREAK.search(head)
        return match.group() if match is not None else self._markup.line_break


def _places(units: Sequence[Unit]) -> Iterator[_Place | None]:
    """Yield the place of each unit; None without a cue."""
    position, head, cue = 0, -1, None
    for unit in units:
        heads = [index for index in range(position, unit.start) if unit.layer[index].cue is not None]
        before = unit.layer[position : heads[-1] if heads else unit.start]
        around = [item for item in unit.layer[heads[-1] + 1 if heads else position : unit.start] if item.raw.strip()]
        is_next = not any(item.kind is Kind.TEXT or LEAD.match(item.raw) for item in around)
        is_directly_behind = not any(item.kind in (Kind.BREAK, Kind.TEXT) and item.raw.strip() for item in before)
        follows = len(heads) == 1 and is_directly_behind and is_next
        if heads:
            head, cue = heads[-1], unit.layer[heads[-1]].cue
        position = unit.end
        has_times = any(TIME.fullmatch(item.raw) for item in unit.items)
        styles = tuple(item.raw for item in around if not LEAD.match(item.raw))
        yield None if cue is None else _Place(head, cue, styles, follows, is_next, has_times)


def _repeated(units: Sequence[Unit], places: Sequence[_Place | None], texts: Sequence[str]) -> dict[int, int]:
    """Return which units, without tags, show words again that are shown until they begin, and where those are."""
    repeated: dict[int, int] = {}
    heads = [None if place is None else place.head for place in places]
    cues = [[*indexes] for _, indexes in groupby(range(len(units)), heads.__getitem__)]
    for before, cue in pairwise(cues):
        if places[before[0]] is not None:
            shown = [texts[index] if _is_plain(units[index].fragment) else None for index in cue]
            number = _num_rolled([texts[index] for index in before], shown)
            repeated |= zip(cue[:number], before[len(before) - number :], strict=True)
    return repeated


def _num_rolled(before: Sequence[str], shown: Sequence[str | None]) -> int:
    """Return how many texts at the end of a cue are those at the beginning of the next."""
    most = min(len(before), len(shown))
    return next((number for number in range(most, 0, -1) if [*before[-number:]] == [*shown[:number]]), 0)


def _is_plain(fragment: Fragment) -> bool:
    return all(isinstance(node, str) for node in fragment)


def _goes_on(places: Sequence[_Place | None], repeated: Mapping[int, int], index: int) -> bool:
    """Return whether a sentence may go on in a unit, behind those that its cue only repeats."""
    first = index
    while first - 1 in repeated and _is_next_in_cue(places[first - 1], places[first]):
        first -= 1
    has_times = (place := places[index]) is not None and place.has_times
    return not has_times and _may_follow(places[first - 1], places[first])


def _is_next_in_cue(before: _Place | None, place: _Place | None) -> bool:
    return before is not None and place is not None and before.head == place.head and place.is_next


def _may_follow(before: _Place | None, behind: _Place | None) -> bool:
    """Return whether a sentence may go on in the first unit of the next cue: soon, in the same place and form."""
    if before is None or behind is None or before.has_times or behind.has_times:
        return False
    first, second = before.cue, behind.cue
    is_soon = first.start < second.start <= first.end + _MAX_GAP_SECONDS and first.end <= second.end
    return behind.follows and is_soon and (before.styles, first.place) == (behind.styles, second.place)


def _by_cue(places: Sequence[_Place | None], numbers: Iterable[int]) -> Counter[int]:
    """Return the sum of numbers of units for each cue, by its head."""
    sums = Counter[int]()
    for place, number in zip(places, numbers, strict=True):
        if place is not None:
            sums[place.head] += number
    return sums


def _caption(place: _Place | None, length: int, characters: Mapping[int, int]) -> Caption:
    """Return a unit as a caption: a part of a cue has a part of its time."""
    if place is None or place.cue.start >= place.cue.end:
        return Caption(length)
    return Caption(length, (place.cue.end - place.cue.start) * length / characters[place.head])


def _joined(units: Sequence[Unit], texts: Sequence[str]) -> Fragment:
    """Return units as one text with dividers. All of them get the elements of all: words may change their caption."""
    if len(units) == 1:
        return units[0].fragment
    places: dict[int, tuple[int, int]] = {}
    nodes: list[Inline] = []
    for unit, text, before in zip(units, texts, ("", *texts), strict=False):
        if before:
            nodes.append(divider(before, text))
        unit.fragment = _with_keys_from(unit.fragment, len(places))
        nodes += unit.fragment
        places |= {key + len(places): place for key, place in unit.places.items()}
    for unit in units:
        unit.places = places
    return joined(nodes)


def _with_keys_from(fragment: Fragment, offset: int) -> Fragment:
    return tuple(
        node
        if isinstance(node, str)
        else replace(node, key=node.key + offset)
        if isinstance(node, Atom)
        else replace(node, key=node.key + offset, children=_with_keys_from(node.children, offset))
        for node in fragment
    )


def _visible(fragment: Fragment) -> str:
    return "".join(texts_in(fragment))


def _split(nodes: Sequence[Inline], lengths: Sequence[int], places: Sequence[int]) -> list[Fragment]:
    """Return the pieces of a fragment between places, without white space at their ends."""
    pieces: list[list[Inline]] = [[] for _ in range(len(places) + 1)]
    position = 0
    for node, length in zip(nodes, lengths, strict=True):
        end = position + length
        if isinstance(node, str):
            borders = [position, *(place for place in dict.fromkeys(places) if position < place < end), end]
            for start, stop in pairwise(borders):
                pieces[bisect_right(places, start)].append(node[start - position : stop - position])
        else:
            pieces[bisect_right(places, position)].append(node)
        position = end
    return [_stripped(joined(piece)) for piece in pieces]


def _stripped(piece: Fragment) -> Fragment:
    nodes = list(piece)
    if nodes and isinstance(nodes[0], str):
        nodes[0] = nodes[0].lstrip()
    if nodes and isinstance(nodes[-1], str):
        nodes[-1] = nodes[-1].rstrip()
    return joined(nodes)


def _filled(pieces: Sequence[Fragment]) -> list[Fragment]:
    """Return pieces; an empty one has the words of the one before it too, or of the first: they stay on the screen."""
    last = next((piece for piece in pieces if _visible(piece)), ())
    filled: list[Fragment] = []
    for piece in pieces:
        last = piece if _visible(piece) else joined([*piece, *last])
        filled.append(last)
    return filled
