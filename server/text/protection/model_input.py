"""A sentence as the model reads it: each protected span as it is, as a substitute, or left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from server.text.items.kinds import ItemKind
from server.text.protection.capitals import Casing, lower
from server.text.protection.means import Means
from server.text.protection.substitutes import choose_stand_in, choose_substitutes
from server.text.protection.truecaser import CasedWords, Truecaser
from server.text.protection.word_alignment import Range, words_of
from server.text.readers.units import OBJECT, ProtectedSpan, Unit

_ENDS_OF_ITEMS = ("%", "‰", "°", "€", "$", "£")


@dataclass(frozen=True, slots=True)
class InputItem:
    """A protected span of a sentence: the index of its word, its means, and the item that the model reads for it."""

    word: int
    start: int  # in the model input
    span: ProtectedSpan
    text: str
    means: Means
    kind: ItemKind
    shown: str


def original_mark(item: InputItem) -> str:
    """Return a sign as the text has it; the model may read another one for which its vocabulary has a token."""
    return item.span.output if len(item.span.output) == 1 else item.text


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A model input, and the ranges of the unit's words in it; a word that is left out has an empty one."""

    text: str
    words: list[Range]
    items: list[InputItem]
    cased: CasedWords
    has_full_stop: bool = False  # behind everything, though the unit has none

    @property
    def has_unusual_case(self) -> bool:
        """Return whether the model reads other capitals than the unit has."""
        return self.cased.casing is not Casing.USUAL or bool(self.cased.shouted)

    @property
    def names(self) -> list[str]:
        """The names that stand for items."""
        return [item.shown for item in self.items if item.means in (Means.NAME, Means.REQUIRED)]

    def with_full_stop(self) -> "ModelInput":
        """Return the input as a sentence: models write more of short ones that end as sentences do."""
        if not (self.text[-1:].isalnum() or self.text.endswith(_ENDS_OF_ITEMS)):
            return self
        return replace(self, text=f"{self.text}.", has_full_stop=True)


def model_input(
    unit: Unit, span: Range, words: Sequence[Range], means: Sequence[Means], truecaser: Truecaser, round_: int
) -> ModelInput | None:
    """Return the model input for a span of a unit; None if there are not enough substitutes for it.

    `words` are those of the unit in the span, `means` those of the protected spans in their order. Each round has
    other names.
    """
    start, end = span
    items = _items(unit, span, means, round_, truecaser.language)
    if items is None:
        return None
    shown = {(each.start, each.end): item for each, item in zip(unit.protected_in(start, end), items, strict=True)}
    contents = [None if word in shown else unit.text[word[0] : word[1]] for word in words]
    cased = truecaser.read(unit.masked(OBJECT, start, end), contents)
    text, position = "", start
    ranges: list[Range] = []
    written: list[InputItem] = []
    for number, word in enumerate(words):
        text += unit.text[position : word[0]]
        content = unit.text[word[0] : word[1]]
        if (found := shown.get(word)) is not None:
            each, its_means, kind, content = found
            written.append(
                InputItem(number, len(text), each, unit.text[each.start : each.end], its_means, kind, content)
            )
            if its_means is Means.PLACED:
                content = ""
                if text.endswith(" "):  # instead of two blanks
                    text = text[:-1] if unit.text[word[1] : word[1] + 1].isspace() else text
        elif (form := cased.words[number]) is not None:
            # A tag may cut a word in two.
            is_rest = number > 0 and words[number - 1][1] == word[0] and unit.text[word[0] - 1].isalpha()
            content = lower(content, truecaser.language) if is_rest else form
        ranges.append((len(text), len(text) + len(content)))
        text += content
        position = word[1]
    return ModelInput(text + unit.text[position:end], ranges, written, cased)


def unit_words(unit: Unit, span: Range) -> list[Range]:
    """Return the words of a unit in a span; each protected span is one word."""
    found: list[Range] = []
    position = span[0]
    protected = [(each.start, each.end) for each in unit.protected_in(*span)]
    for start, end in (*protected, (span[1], span[1])):
        if start > position:
            between = words_of(unit.text[position:start], [cut - position for cut in unit.cuts(position, start)])
            found += [(position + first, position + last) for first, last in between]
        if end > start:
            found.append((start, end))
        position = end
    return found


def _items(
    unit: Unit, span: Range, means: Sequence[Means], round_: int, language: str
) -> list[tuple[ProtectedSpan, Means, ItemKind, str]] | None:
    sentence = unit.text[span[0] : span[1]]
    found: list[tuple[ProtectedSpan, Means, ItemKind, str]] = []
    used: set[str] = set()
    for each, its_means in zip(unit.protected_in(*span), means, strict=True):
        text = unit.text[each.start : each.end]
        kind = each.kind
        if its_means is Means.STAND_IN:
            chosen = choose_stand_in(kind, text, sentence, used, language)
            if chosen is None:
                its_means = Means.NAME
            else:
                kind, text = chosen
                used.update(part for part in (text, *text.split()) if part)
        found.append((each, its_means, kind, text))
    named = [index for index, (_, its_means, _, _) in enumerate(found) if its_means in (Means.NAME, Means.REQUIRED)]
    names = choose_substitutes(len(named), sentence, round_) if named else []
    if names is None:
        return None
    for index, name in zip(named, names, strict=True):
        each, its_means, kind, _ = found[index]
        found[index] = (each, its_means, kind, name)
    return found
