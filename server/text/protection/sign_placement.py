"""Signs that the model did not read or did not write, placed beside the words beside which they stood."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from server.text.items.kinds import PLACED, ItemKind
from server.text.items.quotation_marks import quotation_mark
from server.text.protection.model_input import InputItem, original_mark
from server.text.protection.word_alignment import Links, Range
from server.text.readers.units import Unit

_OPENING = "„«([{‘‚‹"  # “ closes in German
ELLIPSES = ("…", "...")
# Around whole sentences, and around words only.
_AROUND_WORDS = frozenset("()[]'‘’‚‹›")


@dataclass(frozen=True, slots=True)
class PlacedSign:
    """A sign in front of the character at `position` of an answer; `word` is the index of its source word."""

    position: int
    output: str
    shown: str
    word: int
    has_space_before: bool
    has_space_behind: bool


def may_be_added(item: InputItem) -> bool:
    """Return whether an item that an answer lost can be placed in this answer.

    Of entities, and of the sign in `~20`, models write parts or other signs, which would stay beside it.
    """
    return item.kind in PLACED and item.kind is not ItemKind.ENTITY and item.text != "~"


def place_signs(
    unit: Unit,
    unit_words: Sequence[Range],
    signs: Sequence[InputItem],
    text: str,
    words: Sequence[Range],
    links: Links,
    occupied: Sequence[Range],
    languages: tuple[str, str],
) -> list[PlacedSign]:
    """Return the positions of signs in an answer `text` with these words; no sign stands inside the `occupied` ranges.

    A sign that touches the word behind it stands in front of that word's translation, any other behind the translation
    of the word before it. Signs keep their order.
    """
    signed = {sign.word for sign in signs}
    placed: list[PlacedSign] = []
    last = 0
    for sign in signs:
        start, end = sign.span.start, sign.span.end
        before, behind = unit.text[start - 1 : start], unit.text[end : end + 1]
        is_spaced = (not before or before.isspace()) and (not behind or behind.isspace())
        opens = not is_spaced and bool(behind) and not behind.isspace() and (not before or not before.isalnum())
        if sign.text in _OPENING and not is_spaced:
            opens = True
        neighbours = range(sign.word + 1, len(unit_words)) if opens else range(sign.word - 1, -1, -1)
        word = next((each for each in neighbours if each not in signed and links.shape[1] > each), None)
        is_around = sign.text in _AROUND_WORDS
        if is_around and opens and signed.issuperset(range(sign.word)):
            position = 0  # of the whole sentence
        elif (
            (is_around or sign.text in ELLIPSES)
            and not opens
            and signed.issuperset(range(sign.word + 1, len(unit_words)))
        ):
            position = len(text)
        else:
            position = _edge(word, opens, text, words, links, is_around)
        position = max(_outside(position, occupied, opens), last)
        position = _outside(position, occupied, False)
        mark = original_mark(sign)
        shown = quotation_mark(mark, opens, *languages)
        output = sign.span.output if shown == mark else unit.escape(shown)
        placed.append(
            PlacedSign(
                position,
                output,
                sign.text if shown == mark else shown,
                sign.word,
                is_spaced and bool(before),
                is_spaced,
            )
        )
        last = position
    return placed


def _edge(
    word: int | None, opens: bool, text: str, words: Sequence[Range], links: Links, skips_punctuation: bool
) -> int:
    """Return the beginning or the end of the translation of a source word."""
    if word is None or not words:
        return len(text) if opens else 0
    scores = links[:, word]
    if skips_punctuation and any(is_word := [text[start].isalnum() for start, _ in words]):
        scores = np.where(is_word, scores, -1)
    start, end = words[int(scores.argmax())]
    return start if opens else end


def _outside(position: int, occupied: Sequence[Range], opens: bool) -> int:
    for start, end in occupied:
        if start < position < end:
            return start if opens else end
    return position
