"""Sentences of a wanted number of words, drawn from a small grammar.

A grammar is a text of lines `name = alternative | alternative`; an alternative is words and `{name}`s; lines that start
with a blank go on; `#` starts a comment line. `name/12 = ...` has 12 words at most. All sentences begin at `sentence`.
"""

import math
import re
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

MAX_WORDS = 60
START = "sentence"

# From so many sentences on, an alternative is as good as any other. With chances as the numbers are, every long
# sentence would be a chain of the shortest clauses: there are by far the most of these.
_MANY = 10_000

_REFERENCE = re.compile(r"\{(\w+)\}")


class GrammarInvalid(ValueError):
    """A grammar that names what it does not have, or that goes round in circles without a word."""


class _Rule(NamedTuple):
    """An alternative: `template % texts of the symbols`; `num_words` are its own, without those of the symbols."""

    template: str
    symbols: tuple[str, ...]
    num_words: int


class _Filling(NamedTuple):
    """A template, and the ways to fill its places."""

    template: str
    ways: "_Drawn[_Way]"


class _Way(NamedTuple):
    """What the first place is drawn from, and the ways to fill the places after it with the words that are left."""

    first: "_Drawn[str | _Filling]"
    rest: "_Drawn[_Way] | None"


_Item = TypeVar("_Item", bound="str | _Filling | _Way")


class _Drawn(NamedTuple, Generic[_Item]):
    """Things to draw from. `borders` cut [0, 1) into their shares, or are None where all are equal.

    `num_sentences` is how many sentences, or parts of them, can come of it.
    """

    items: tuple[_Item, ...]
    borders: tuple[float, ...] | None
    num_sentences: int


_Options = _Drawn[str | _Filling]


class Grammar:
    """Draws sentences, each in some ten microseconds: all ways to reach a number of words are worked out before.

    There must be sentences of every number of words from 1 to `max_words`.
    An alternative that leads to few sentences is drawn less often, or the shortest would be said over and over.
    Raises `GrammarInvalid`.
    """

    def __init__(self, text: str, max_words: int = MAX_WORDS) -> None:
        self._rules, limits = _parse(text, max_words)
        self._lengths = _reachable_lengths(self._rules, limits)
        self._options: dict[tuple[str, int], _Options] = {}
        self._ways: dict[tuple[tuple[str, ...], int], _Drawn[_Way]] = {}
        self._unfinished: set[tuple[str, int]] = set()
        self._starts = [self._options_of(START, length) for length in range(max_words + 1)]
        if missing := [length for length in range(1, max_words + 1) if not self._starts[length].items]:
            raise GrammarInvalid(f"no sentence of {missing} words")

    def sentence(self, num_words: int, draw: Callable[[], float]) -> str:
        """A sentence of 1 to `max_words` words. `draw` gives numbers of [0, 1), the source of all chance."""
        text = _expand(self._starts[num_words], draw)
        return text[0].upper() + text[1:]

    def num_sentences(self, num_words: int) -> int:
        """How many different ways there are to draw a sentence of that many words."""
        return self._starts[num_words].num_sentences

    def _options_of(self, symbol: str, length: int) -> _Options:
        key = (symbol, length)
        if key in self._unfinished:
            raise GrammarInvalid(f"{symbol} leads back to itself without a word in between")
        if key not in self._options:
            self._unfinished.add(key)
            options: list[str | _Filling] = []
            for rule in self._rules[symbol]:
                if not rule.symbols and rule.num_words == length:
                    options.append(rule.template % ())
                elif rule.symbols and (ways := self._ways_of(rule.symbols, length - rule.num_words)).items:
                    options.append(_Filling(rule.template, ways))
            counts = [1 if isinstance(each, str) else each.ways.num_sentences for each in options]
            self._options[key] = _drawn(options, counts)
            self._unfinished.remove(key)
        return self._options[key]

    def _ways_of(self, symbols: tuple[str, ...], length: int) -> _Drawn[_Way]:
        key = (symbols, length)
        if key not in self._ways:
            ways, counts = [], []
            for of_first in sorted(self._lengths[symbols[0]]):
                rest = self._ways_of(symbols[1:], length - of_first) if len(symbols) > 1 and of_first < length else None
                if rest.items if rest else of_first == length and len(symbols) == 1:
                    first = self._options_of(symbols[0], of_first)
                    ways.append(_Way(first, rest))
                    counts.append(first.num_sentences * (rest.num_sentences if rest else 1))
            self._ways[key] = _drawn(ways, counts)
        return self._ways[key]


def _drawn(items: Sequence[_Item], counts: Sequence[int]) -> _Drawn[_Item]:
    borders = None
    if len({min(count, _MANY) for count in counts}) > 1:
        *sums, total = accumulate(math.sqrt(min(count, _MANY)) for count in counts)
        borders = tuple(each / total for each in sums)
    return _Drawn(tuple(items), borders, sum(counts))


def _expand(options: _Options, draw: Callable[[], float]) -> str:
    items, borders, _ = options
    option = items[int(draw() * len(items)) if borders is None else bisect(borders, draw())]
    if isinstance(option, str):
        return option
    template, ways = option
    texts = []
    left: _Drawn[_Way] | None = ways
    while left:
        places, borders, _ = left
        first, left = places[int(draw() * len(places)) if borders is None else bisect(borders, draw())]
        texts.append(_expand(first, draw))
    return template % tuple(texts)


def _parse(text: str, max_words: int) -> tuple[dict[str, list[_Rule]], dict[str, int]]:
    """The alternatives of each name, and the most words it may have."""
    lines: list[str] = []
    for line in text.splitlines():
        if line[:1].isspace() and line.strip() and lines:
            lines[-1] += line
        elif line.strip() and not line.startswith("#"):
            lines.append(line)
    rules, limits = {}, {}
    for line in lines:
        head, _, alternatives = line.partition("=")
        name, _, limit = head.strip().partition("/")
        rules[name] = [_rule(" ".join(each.split())) for each in alternatives.split("|")]
        limits[name] = min(int(limit or max_words), max_words)
    for name in rules:
        if unknown := {symbol for rule in rules[name] for symbol in rule.symbols} - set(rules):
            raise GrammarInvalid(f"{name} names {', '.join(sorted(unknown))}, which the grammar does not have")
    if START not in rules:
        raise GrammarInvalid(f"nothing is called {START}")
    return rules, limits


def _rule(alternative: str) -> _Rule:
    symbols = tuple(_REFERENCE.findall(alternative))
    template = _REFERENCE.sub("%s", alternative.replace("%", "%%"))
    return _Rule(template, symbols, len(alternative.split()) - len(symbols))


def _reachable_lengths(rules: Mapping[str, Sequence[_Rule]], limits: Mapping[str, int]) -> dict[str, set[int]]:
    """The numbers of words that each symbol can have."""
    lengths: dict[str, set[int]] = {name: set() for name in rules}
    has_grown = True
    while has_grown:
        has_grown = False
        for name, those in rules.items():
            before = len(lengths[name])
            for rule in those:
                sums = {rule.num_words}
                for symbol in rule.symbols:
                    sums = {a + b for a in sums for b in lengths[symbol]}
                lengths[name] |= {each for each in sums if each <= limits[name]}
            has_grown = has_grown or len(lengths[name]) > before
    return lengths
