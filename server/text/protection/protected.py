"""Interface of the parts of a sentence: a model input, and the restoration of what must survive in its answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from server.text.negation import Alternatives
from server.text.protection.means import KeptItem
from server.text.protection.tag_placement import Block
from server.text.protection.word_alignment import Range
from server.text.readers.units import OBJECT


@dataclass(slots=True)
class TokenAttention:
    """The attention between a model's answer and its input, [target tokens, source tokens], and the tokens' spans."""

    weights: NDArray[np.float32]
    source_spans: Sequence[Range]
    target_spans: Sequence[Range]


@dataclass(slots=True)
class Restored:
    """A translated part of a unit: `text` with `OBJECT` for each of the `outputs`, in its order.

    The target words of the `block` count from the part's own beginning. Plain text has none.
    """

    text: str
    outputs: Sequence[str] = ()
    block: Block | None = None
    kept: Sequence[KeptItem] = ()


def with_outputs(restored: Restored) -> str:
    """Return a restored text without tags, with its items."""
    outputs = iter(restored.outputs)
    first, *others = restored.text.split(OBJECT)
    return first + "".join(next(outputs, OBJECT) + other for other in others)


@dataclass(frozen=True, slots=True)
class Losses:
    """The items that an answer lost, by their indices, or its negation; or that it invented a number."""

    indices: tuple[int, ...]
    has_lost_negation: bool = False
    has_invented: bool = False


class Protected(Protocol):
    """A part of a sentence as the model reads it."""

    @property
    def text(self) -> str:
        """The model input."""
        ...

    @property
    def substitutes(self) -> Sequence[str]:
        """The names that stand for items."""
        ...

    @property
    def may_lose_items(self) -> bool:
        """Return whether an answer can be rejected."""
        ...

    @property
    def was_lost(self) -> bool:
        """Return whether an earlier search lost something of the sentence."""
        ...

    @property
    def may_change_answers(self) -> bool:
        """Return whether the restored text may differ from the answer, or be rejected."""
        ...

    @property
    def needs_beams(self) -> bool:
        """Return whether an earlier search with fewer beams lost the negation."""
        ...

    @property
    def must_have_substitutes(self) -> bool:
        """Return whether the search may only produce answers with all substitutes."""
        ...

    @property
    def required_terms(self) -> Sequence[Alternatives]:
        """The words of which the search must write one each."""
        ...

    @property
    def is_fragment(self) -> bool:
        """Return whether it is a piece of a sentence, between items."""
        ...

    @property
    def is_continuation(self) -> bool:
        """Return whether another part of the same sentence comes before."""
        ...

    @property
    def places_signs(self) -> bool:
        """Return whether signs or capitals are placed by the alignment of words."""
        ...

    @property
    def description(self) -> str:
        """Its name in an error message."""
        ...

    def restore(self, answer: str, attention: TokenAttention | None, *, corrects: bool = False) -> Restored | Losses:
        """Return a model's answer with all that must survive, or what it lost; `corrects` allows to change numbers."""
        ...
