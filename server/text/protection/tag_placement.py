"""Inline tags put around the words of a translation that their words have become. None is lost, none is crossed."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from server.text.protection.free_words import CERTAIN, FreeWords, PlacementScores, TargetWords
from server.text.protection.word_alignment import Links, Range
from server.text.readers.units import OBJECT, Tag, Unit


@dataclass(frozen=True, slots=True)
class Block:
    """Words of a unit and those that they have become; blocks come one after the other in both.

    `source` and `target` are ranges of characters in the whole unit and in its whole translation. `copied` are the
    places in `target` of what is copied, whose links are certain.
    """

    source: Sequence[Range]
    target: Sequence[Range]
    links: Links
    copied: Sequence[int] = ()


@dataclass(slots=True)
class _Placed:
    """Where a tag goes: target words from `first` to `last`, and then characters."""

    tag: Tag
    children: list["_Placed"]
    first: int = 0
    last: int = 0
    start: int = 0
    end: int = 0


def render(unit: Unit, target: str, blocks: Sequence[Block], outputs: Sequence[str]) -> str:
    """The translation `target` of a unit with its tags, escaped; each `OBJECT` in it is the next of the `outputs`."""
    write = _writer(unit.escape, outputs)
    if not unit.tags:
        return write(target)
    source = unit.text
    placed = [_Placed(tag, []) for tag in unit.tags]
    top: list[_Placed] = []
    for each in placed:
        (placed[each.tag.parent].children if each.tag.parent >= 0 else top).append(each)
    words = _Words(blocks)
    _place(top, 0, len(words.target), words)
    _measure(top, (0, len(target)), words, source, target)
    return _written(target, (0, len(target)), top, write)


def fits(tags: Sequence[Tag], limits: Range, order: Sequence[Range]) -> bool:
    """Whether tags can stand around what is copied from a sentence, from `limits`, if it comes out in this order.

    What is copied may be an element itself, so it must not get into another one, or out of its own.
    """
    for tag in tags:
        inside = [tag.start <= start and end <= tag.end for start, end in order]
        if tag.start < limits[0] or tag.begins_before:
            inside.insert(0, True)
        if tag.end > limits[1] or tag.ends_behind:
            inside.append(True)
        if True in inside and not all(inside[inside.index(True) : len(inside) - inside[::-1].index(True)]):
            return False
    return True


def _writer(escape: Callable[[str], str], outputs: Sequence[str]) -> Callable[[str], str]:
    """Writes a text from its beginning to its end, in as many parts as there are."""
    left = iter(outputs)

    def write(text: str) -> str:
        first, *others = text.split(OBJECT)
        return escape(first) + "".join(next(left) + escape(other) for other in others)

    return write


class _Words:
    """The words of all blocks side by side."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.source = [word for block in blocks for word in block.source]
        self.target = [word for block in blocks for word in block.target]
        self._starts = [start for start, _ in self.source]
        self._ends = [end for _, end in self.source]
        self._blocks = blocks
        # Of each block's words, which the first is among all.
        self._first_source = [0, *accumulate(len(block.source) for block in blocks)]
        self._first_target = [0, *accumulate(len(block.target) for block in blocks)]
        is_copied = [False] * len(self.target)
        for block, first in zip(blocks, self._first_target, strict=False):
            for place in block.copied:
                is_copied[first + place] = True
        self.told = TargetWords(is_copied)

    def first_after(self, place: int) -> int:
        """The first source word that does not begin before a character."""
        return bisect_left(self._starts, place)

    def inside(self, tag: Tag) -> range:
        """The source words inside a tag."""
        return range(self.first_after(tag.start), bisect_right(self._ends, tag.end))

    def gains(self, inside: range) -> PlacementScores:
        """What speaks for target words to be inside a tag around these source words."""
        if not inside:
            return PlacementScores(0, ())
        first = bisect_right(self._first_source, inside.start) - 1
        last = bisect_left(self._first_source, inside.stop)
        values: list[float] = []
        for block, begin in zip(self._blocks[first:last], self._first_source[first:last], strict=True):
            columns = block.links[:, max(inside.start - begin, 0) : inside.stop - begin]
            gains = columns.sum(axis=1) - np.float32(0.5)
            gains[list(block.copied)] *= CERTAIN
            values += gains.tolist()
        return PlacementScores(self._first_target[first], values)

    def image(self, word: int) -> int:
        """The target word that a source word has become most likely."""
        number = bisect_right(self._first_source, word) - 1
        block, first = self._blocks[number], self._first_target[number]
        if not block.target:
            return first
        return first + int(block.links[:, word - self._first_source[number]].argmax())


def _place(siblings: Sequence[_Placed], low: int, high: int, words: _Words) -> None:
    """Give every tag target words between `low` and `high` of its own, the surest first."""
    wanted: list[tuple[_Placed, PlacementScores]] = []
    for each in siblings:
        inside = words.inside(each.tag)
        if each.tag.begins_before or each.tag.ends_behind:
            # The first or the last of all; whatever is beside it is on its other side.
            gains = words.told.values(words.gains(inside), low, high)
            if each.tag.begins_before:
                each.first = low
                each.last = low = low + _best_end(gains)
            else:
                each.last = high
                each.first = high = high - _best_end(gains[::-1])
        elif inside:
            wanted.append((each, words.gains(inside)))
        else:
            each.first = each.last = _point(each.tag, words)
    gaps = FreeWords(words.told, low, high)
    for each, its_gains in sorted(wanted, key=lambda item: -words.told.best_run(item[1], low, high)[0]):
        best = gaps.best_run(its_gains)
        if best is not None and best[0] > -CERTAIN / 4:
            _, each.first, each.last = best
            gaps.take(each.first, each.last)
        else:  # fewer words than tags, or only words that it must not have: it stands somewhere, around none
            each.first = each.last = low
    for each in siblings:
        if each.first == each.last and not (each.tag.begins_before or each.tag.ends_behind):
            each.first = each.last = min(max(each.first, low), high)
        _place(each.children, each.first, each.last, words)


def _best_end(gains: Sequence[float]) -> int:
    """How many of the first to take for the largest sum; none, if all sums are negative."""
    return int(np.concatenate([[0], np.cumsum(gains, dtype=np.float64)]).argmax())


def _point(tag: Tag, words: _Words) -> int:
    """Before which target word something stands that has no words inside."""
    after = words.first_after(tag.start)
    if after == len(words.source):
        return len(words.target)
    before = after - 1
    touches_before = before >= 0 and words.source[before][1] == tag.start
    touches_after = words.source[after][0] == tag.start
    if touches_before and not touches_after:
        return words.image(before) + 1
    return words.image(after)


def _measure(siblings: Sequence[_Placed], limits: Range, words: _Words, source: str, target: str) -> None:
    """Turn words into characters; white space inside a tag at its ends stays inside."""
    low, high = limits
    for each in sorted(siblings, key=_order):
        tag = each.tag
        if each.first < each.last:
            each.start, each.end = words.target[each.first][0], words.target[each.last - 1][1]
            content = source[tag.start : tag.end]
            for _ in range(len(content) - len(content.lstrip())):
                each.start -= each.start > low and target[each.start - 1].isspace()
            for _ in range(len(content) - len(content.rstrip())):
                each.end += each.end < high and target[each.end].isspace()
        else:
            each.start = each.end = _gap(each, words, source, target)
            if tag.start < tag.end:  # around white space
                while each.end < high and target[each.end].isspace():
                    each.end += 1
        each.start = min(max(each.start, low), high)
        each.end = min(max(each.end, each.start), high)
        if tag.begins_before:
            each.start = limits[0]
        if tag.ends_behind:
            each.end = high
        low = each.end
        _measure(each.children, (each.start, each.end), words, source, target)


def _order(placed: _Placed) -> tuple[int, int, int]:
    """What comes first is first, what has no end here is last."""
    tag = placed.tag
    return (tag.ends_behind - tag.begins_before, placed.first, placed.last)


def _gap(each: _Placed, words: _Words, source: str, target: str) -> int:
    """The character at which something without words stands: on the side of the white space it stood on."""
    before = words.target[each.first - 1][1] if each.first else 0
    after = words.target[each.first][0] if each.first < len(words.target) else len(target)
    start = each.tag.start
    if each.first == 0 and start == 0:
        return 0
    if each.first == len(words.target) and start == len(source):
        return len(target)
    follows_space = start > 0 and source[start - 1].isspace()
    return after if follows_space or before == 0 else before


def _written(target: str, limits: Range, placed: Sequence[_Placed], escape: Callable[[str], str]) -> str:
    parts, place = [], limits[0]
    for each in sorted(placed, key=lambda item: (_order(item)[0], item.start, item.end)):
        parts += [
            escape(target[place : each.start]),
            each.tag.opening,
            _written(target, (each.start, each.end), each.children, escape),
            each.tag.closing,
        ]
        place = each.end
    return "".join((*parts, escape(target[place : limits[1]])))
