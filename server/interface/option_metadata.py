"""Metadata of a decoding option: the searches that it applies to, and how it reaches the engine."""

from dataclasses import dataclass
from enum import Flag, auto
from typing import Final


class SearchMode(Flag):
    """How a request searches for its translations."""

    GREEDY = auto()
    BEAM = auto()
    SAMPLING = auto()
    ALTERNATIVES = auto()  # different first tokens, each continued greedily


GREEDY, BEAM, SAMPLING, ALTERNATIVES = SearchMode


@dataclass(frozen=True, slots=True)
class Applies:
    """The search modes that an option has an effect in, and the options that it cannot be combined with."""

    modes: SearchMode
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """Marks an option that reaches the engine as a field of `SentenceParams`.

    The options inside `SentenceParams` hold its default instead, so that equal sentences of different requests are
    equal to the sentence cache.
    """


RESOLVED: Final = Resolved()
