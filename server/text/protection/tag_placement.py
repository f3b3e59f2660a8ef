"""Placement of inline tags in a translation, around the words aligned with theirs.

Tags are never dropped or interleaved.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from server.interface.interruption import checkpoint
from server.text.protection.free_words import CERTAIN, FreeWords, PlacementScores, TargetWords
from server.text.protection.word_alignment import Links, Range
from server.text.readers.units import Tag, Unit, filled


@dataclass(frozen=True, slots=True)
class Block:
    """Words of a unit and those of their translation; blocks are in the same order in both.

    `source` and `target` are ranges of characters in the whole unit and in its whole translation. `protected` are the
    indices in `target` of protected spans, whose links are certain. `suffixes` are the indices in `source` of words
    without a counterpart, such as the `nd` that a tag cuts off `2nd`.
    """

    source: Sequence[Range]
    target: Sequence[Range]
    links: Links
    protected: Sequence[int] = ()
    suffixes: Sequence[int] = ()


@dataclass(slots=True)
class _Placed:
    """The position of a tag: target words from `first` to `last`, then characters from `start` to `end`."""

    tag: Tag
    children: list["_Placed"]
    first: int = 0
    last: int = 0
    start: int = 0
    end: int = 0


def render(unit: Unit, target: str, blocks: Sequence[Block], outputs: Sequence[str]) -> str:
    """Return the translation `target` of a unit with its tags, escaped; each `OBJECT` becomes the next of `outputs`."""
    if unit.is_plain:
        return unit.escape(target)
    write = partial(filled, outputs=iter(outputs), escape=unit.escape)
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


def _cuts(links: Links, borders: Sequence[int]) -> list[int]:
    """Return the target word in front of which each cut of a sentence is.

    `borders` are the source words behind the cuts, in their order. The cuts leave as much of the links as possible
    within pieces: a target word belongs to the piece whose source words it is aligned with.
    """
    columns = np.concatenate([np.zeros((len(links), 1)), np.cumsum(links, axis=1, dtype=np.float64)], axis=1)
    pieces = np.diff(columns[:, [0, *borders, links.shape[1]]], axis=1)
    sums = np.concatenate([np.zeros((1, pieces.shape[1])), np.cumsum(pieces, axis=0)])  # [cuts, pieces]
    places = np.arange(len(sums))
    best = np.where(places == 0, 0.0, -np.inf)  # of the pieces so far, by the cut behind them
    came_from = []
    for piece in range(len(borders)):
        checkpoint()
        gains = best - sums[:, piece]
        highest = np.maximum.accumulate(gains)
        came_from.append(np.maximum.accumulate(np.where(gains == highest, places, 0)))
        best = highest + sums[:, piece]
    cut = int((best - sums[:, -1]).argmax())
    cuts = [cut]
    for origins in came_from[:0:-1]:
        cut = int(origins[cut])
        cuts.append(cut)
    return cuts[::-1]


def fits(tags: Sequence[Tag], limits: Range, order: Sequence[Range]) -> bool:
    """Return whether tags can stand around the protected spans of a sentence, from `limits`, in this order of spans.

    A protected span may be an element itself, so it must stay in its element and out of all others.
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


class _Words:
    """The words of all blocks, in their order."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.source = [word for block in blocks for word in block.source]
        self.target = [word for block in blocks for word in block.target]
        self._starts = [start for start, _ in self.source]
        self._ends = [end for _, end in self.source]
        self._blocks = blocks
        # The index of each block's first word among all words.
        self._first_source = [0, *accumulate(len(block.source) for block in blocks)]
        self._first_target = [0, *accumulate(len(block.target) for block in blocks)]
        is_protected = [False] * len(self.target)
        for block, first in zip(blocks, self._first_target, strict=False):
            for index in block.protected:
                is_protected[first + index] = True
        self.target_words = TargetWords(is_protected)
        # The scores of words whose whole block is inside a tag: the links of a word sum to 1.
        self._whole = [0.5 * CERTAIN if protected else 0.5 for protected in is_protected]
        self._suffixes = {
            first + index for block, first in zip(blocks, self._first_source, strict=False) for index in block.suffixes
        }

    def first_after(self, position: int) -> int:
        """Return the first source word that does not begin before a character."""
        return bisect_left(self._starts, position)

    def inside(self, tag: Tag) -> range:
        """Return the source words inside a tag."""
        return range(self.first_after(tag.start), bisect_right(self._ends, tag.end))

    def has_counterpart(self, inside: range) -> bool:
        """Return whether any of these source words is more than the suffix of a number."""
        return bool(inside) and not self._suffixes.issuperset(inside)

    def scores(self, inside: range) -> PlacementScores:
        """Return the scores of target words for a tag around these source words."""
        if not inside:
            return PlacementScores(0, ())
        first = bisect_right(self._first_source, inside.start) - 1
        last = bisect_left(self._first_source, inside.stop) - 1
        values = self._scores_in(first, inside)
        if first < last:
            whole = self._whole[self._first_target[first + 1] : self._first_target[last]]
            values = [*values, *whole, *self._scores_in(last, inside)]
        return PlacementScores(self._first_target[first], values)

    def _scores_in(self, index: int, inside: range) -> Sequence[float]:
        """Return the scores of the target words of one block."""
        block, begin = self._blocks[index], self._first_source[index]
        if inside.start <= begin and begin + len(block.source) <= inside.stop:
            return self._whole[self._first_target[index] : self._first_target[index + 1]]
        columns = block.links[:, max(inside.start - begin, 0) : inside.stop - begin]
        scores: list[float] = (columns.sum(axis=1) - np.float32(0.5)).tolist()
        for place in block.protected:
            scores[place] *= CERTAIN
        return scores

    def cuts(self, words: Sequence[int]) -> list[int]:
        """Return the target words in front of which cuts are that are in front of these source words."""
        found: dict[int, int] = {}
        inside: dict[int, list[int]] = {}
        for word in dict.fromkeys(words):
            index = min(bisect_right(self._first_source, word), len(self._blocks)) - 1
            found[word] = self._first_target[index + (word > self._first_source[index])]
            if self._first_source[index] < word < self._first_source[index + 1]:
                inside.setdefault(index, []).append(word)
        for index, its_words in inside.items():
            first = self._first_source[index]
            places = _cuts(self._blocks[index].links, [word - first for word in its_words])
            found.update(zip(its_words, (self._first_target[index] + place for place in places), strict=True))
        return [found[word] for word in words]

    def image(self, word: int) -> int:
        """Return the most likely target word of a source word."""
        index = bisect_right(self._first_source, word) - 1
        block, first = self._blocks[index], self._first_target[index]
        if not block.target:
            return first
        return first + int(block.links[:, word - self._first_source[index]].argmax())


def _place(siblings: Sequence[_Placed], low: int, high: int, words: _Words) -> None:
    """Give each tag target words of its own between `low` and `high`, the most certain tag first."""
    wanted: list[tuple[_Placed, PlacementScores]] = []
    dividers = [each for each in siblings if each.tag.divides]
    cuts = words.cuts([words.first_after(each.tag.start) for each in dividers]) if dividers else ()
    for each, cut in zip(dividers, cuts, strict=True):
        each.first = each.last = cut
    for each in siblings:
        checkpoint()
        if each.tag.divides:
            continue
        inside = words.inside(each.tag)
        if each.tag.begins_before or each.tag.ends_behind:
            # The first or the last of all tags; the others are on its other side.
            values = words.target_words.values(words.scores(inside), low, high)
            if each.tag.begins_before:
                each.first = low
                each.last = low = low + _best_end(values)
            else:
                each.last = high
                each.first = high = high - _best_end(values[::-1])
        elif words.has_counterpart(inside):
            wanted.append((each, words.scores(inside)))
        else:
            each.first = each.last = _point(each.tag, words)
    free = FreeWords(words.target_words, low, high)
    for each, scores in sorted(wanted, key=lambda item: -words.target_words.best_run(item[1], low, high)[0]):
        best = free.best_run(scores)
        if best is not None and best[0] > -CERTAIN / 4:
            _, each.first, each.last = best
            free.take(each.first, each.last)
        else:  # fewer words than tags, or only words that it must not contain: it stands somewhere without any
            each.first = each.last = low
    for each in siblings:
        if each.first == each.last and not (each.tag.begins_before or each.tag.ends_behind):
            each.first = each.last = min(max(each.first, low), high)
        _place(each.children, each.first, each.last, words)


def _best_end(scores: Sequence[float]) -> int:
    """Return how many of the first scores have the largest sum; 0 if all sums are negative."""
    return int(np.concatenate([[0], np.cumsum(scores, dtype=np.float64)]).argmax())


def _point(tag: Tag, words: _Words) -> int:
    """Return the target word in front of which a tag without words stands."""
    after = words.first_after(tag.start)
    if after == len(words.source):
        return len(words.target)
    before = after - 1
    touches_before = before >= 0 and words.source[before][1] >= tag.start  # or is inside
    return words.image(before) + 1 if touches_before else words.image(after)


def _measure(siblings: Sequence[_Placed], limits: Range, words: _Words, source: str, target: str) -> None:
    """Turn words into characters; white space at the ends of a tag stays inside it."""
    low, high = limits
    for each in sorted(siblings, key=_order):
        checkpoint()
        tag = each.tag
        if each.first < each.last:
            each.start, each.end = words.target[each.first][0], words.target[each.last - 1][1]
            content = source[tag.start : tag.end]
            for _ in range(len(content) - len(content.lstrip())):
                each.start -= each.start > low and target[each.start - 1].isspace()
            for _ in range(len(content) - len(content.rstrip())):
                each.end += each.end < high and target[each.end].isspace()
        else:
            each.start = each.end = _position(each, words, source, target)
            if source[tag.start : tag.end].isspace():
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
    """Return the sort key of siblings: tags from other units first, tags without an end here last."""
    tag = placed.tag
    return (tag.ends_behind - tag.begins_before, placed.first, placed.last)


def _position(each: _Placed, words: _Words, source: str, target: str) -> int:
    """Return the character at which a tag without words stands: on the same side of white space as in the source."""
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
    parts: list[str] = []
    position = limits[0]
    for each in sorted(placed, key=lambda item: (_order(item)[0], item.start, item.end)):
        start, end = each.start, each.end
        if each.tag.replaces_blank:
            if target[end : end + 1] == " " and end < limits[1]:
                end += 1
            elif target[start - 1 : start] == " " and position < start:
                start -= 1
        parts += [
            escape(target[position:start]),
            _opening(each, target),
            _written(target, (each.start, each.end), each.children, escape),
            each.tag.closing,
        ]
        position = end
    return "".join((*parts, escape(target[position : limits[1]])))


def _opening(placed: _Placed, target: str) -> str:
    """Return the opening of a tag; the white space of a mark is in front of it between a word and a sign or a space."""
    opening, start = placed.tag.opening, placed.start
    is_behind_word = start == placed.end > 0 and target[start - 1].isalnum() and not target[start : start + 1].isalnum()
    return f" {opening[:-1]}" if is_behind_word and opening.endswith(" ") else opening
