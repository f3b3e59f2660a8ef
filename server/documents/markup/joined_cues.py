"""Cues that one sentence runs over: translated as one text, and divided into the same cues again."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import BinaryIO

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
from server.documents.markup.cues import TIME, CueMarkup, Line, lines_of
from server.documents.markup.item_rewriting import rewritten
from server.documents.markup.items import Cue, Item, Kind
from server.documents.markup.units import Unit
from server.text.captions import LEAD, Caption, ReadingLimits, cuts, divider, joined_captions
from server.text.readers.units import DIVIDER

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
    items = file_items(lines_of(text))
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
        groups = [range(index, index + 1) for index in range(len(units))]
        if self._joins:
            groups = joined_captions(texts, [_may_follow(*pair) for pair in pairwise(places)])
        fragments = [_joined(units[group.start : group.stop], texts[group.start : group.stop]) for group in groups]
        translations = yield as_window(fragments, is_held=is_held)
        characters = _by_cue(places, map(len, texts))
        captions = [_caption(place, len(text), characters) for place, text in zip(places, texts, strict=True)]
        num_units = _by_cue(places, [1] * len(units))
        results: list[Fragment] = []
        for group, fragment, translation in zip(groups, fragments, translations, strict=True):
            its_units = units[group.start : group.stop]
            if len(group) == 1:
                results.append(translation)
                continue
            self.counts["captions_joined"] += len(group)
            if translation == fragment:
                results += [unit.fragment for unit in its_units]
            else:
                results += self._divided(translation, captions[group.start : group.stop])
                for unit, place in zip(its_units, places[group.start : group.stop], strict=True):
                    if place is not None and num_units[place.head] == 1:
                        self._second_lines[id(unit)] = self._line_break(unit.layer[place.head].raw)
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
        return _filled(_split(nodes, [len(text.replace(DIVIDER, "")) for text in shown], places))

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
        follows = (
            len(heads) == 1
            and not any(item.kind in (Kind.BREAK, Kind.TEXT) and item.raw.strip() for item in before)
            and not any(item.kind is Kind.TEXT or LEAD.match(item.raw) for item in around)
        )
        if heads:
            head, cue = heads[-1], unit.layer[heads[-1]].cue
        position = unit.end
        has_times = any(TIME.fullmatch(item.raw) for item in unit.items)
        styles = tuple(item.raw for item in around if not LEAD.match(item.raw))
        yield None if cue is None else _Place(head, cue, styles, follows, has_times)


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
    """Return pieces; one without words has those of the one before it too, or of the first: they stay on the screen."""
    last = next((piece for piece in pieces if _visible(piece)), ())
    filled: list[Fragment] = []
    for piece in pieces:
        last = piece if _visible(piece) else joined([*piece, *last])
        filled.append(last)
    return filled
