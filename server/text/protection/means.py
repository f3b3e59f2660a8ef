"""The means by which items and negations get through a model, from the weakest to the strongest."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from server.text.items.kinds import HIDDEN, PLACED, ItemKind


class Means(StrEnum):
    """How an item got through the model."""

    AS_IS = "as_is"  # the model read it and wrote it
    HYPOTHESIS = "hypothesis"  # as it is, in another hypothesis than the best one
    CORRECTED = "corrected"  # the model wrote another number in its place
    STAND_IN = "stand_in"  # the model read another item of its kind
    NAME = "name"  # the model read a name
    REQUIRED = "required"  # the search had to write that name
    PLACED = "placed"  # left out of the model input, and placed beside its words
    APART = "apart"  # the sentence was translated around it


class NegationMeans(IntEnum):
    """How the negation of a sentence gets through the model."""

    HYPOTHESES = 0  # the hypotheses of the search that the request asks for
    BEAMS = 1  # those of a search with more beams
    REQUIRED = 2  # the search has to write a word that negates
    ANY_ANSWER = 3  # what that search writes: it is the last one


BEAMS_FOR_NEGATIONS = 4

_LADDER = (Means.AS_IS, Means.STAND_IN, Means.NAME, Means.REQUIRED, Means.APART)
_LADDER_OF_HIDDEN = (Means.NAME, Means.REQUIRED, Means.APART)
_LADDER_OF_PLACED = (Means.AS_IS, Means.PLACED)


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An item of a source text, and the means that kept it."""

    text: str
    kind: ItemKind
    means: Means


def first_means(kind: ItemKind, never_copied: Collection[ItemKind] = ()) -> Means:
    """Return the means that is tried first: as it is, unless the model cannot read or never copies the kind."""
    if kind in never_copied:
        return Means.PLACED if kind in PLACED else Means.NAME
    return _ladder(kind)[0]


def next_means(kind: ItemKind, means: Means) -> Means:
    """Return the means to try for an item that was lost with this one."""
    ladder = _ladder(kind)
    return ladder[min(ladder.index(means) + 1, len(ladder) - 1)]


def next_negation_means(means: NegationMeans, beam_size: int) -> NegationMeans:
    """Return the means to try for a negation that was lost with this one, in a search of `beam_size` beams."""
    if means is NegationMeans.HYPOTHESES and beam_size < BEAMS_FOR_NEGATIONS:
        return NegationMeans.BEAMS
    return NegationMeans.ANY_ANSWER if means >= NegationMeans.REQUIRED else NegationMeans.REQUIRED


def _ladder(kind: ItemKind) -> tuple[Means, ...]:
    if kind in PLACED:
        return _LADDER_OF_PLACED
    return _LADDER_OF_HIDDEN if kind in HIDDEN else _LADDER
