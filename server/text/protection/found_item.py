"""An item found in an answer of a model, and the notation of what replaces it there."""

from dataclasses import dataclass

from server.text.items.kinds import ItemKind
from server.text.items.notation import localized, localized_number
from server.text.items.quotation_marks import opens, quotation_mark
from server.text.protection.means import Means
from server.text.protection.model_input import InputItem
from server.text.protection.substitutes import substitute_number


@dataclass(frozen=True, slots=True)
class Notation:
    """The languages of a translation, and whether numbers change to the notation of the second."""

    source: str
    target: str
    localizes: bool = True

    def of(self, kind: ItemKind, item: str) -> str:
        """Return an item as the target language writes it."""
        return localized(kind, item, self.source, self.target) if self.localizes else item

    def of_mark(self, mark: str, text: str, position: int) -> str:
        """Return a quotation mark at a position of a text as the target language writes it; other signs as they are."""
        return quotation_mark(mark, opens(text, position), self.source, self.target) if self.localizes else mark

    def of_number(self, item: str) -> str:
        """Return the number of an item as the target language writes it."""
        number = substitute_number(item)
        return localized_number(number, self.source, self.target) if self.localizes else number


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item in an answer: `output` takes the place of the answer's text there, unless it is None."""

    item: InputItem
    start: int
    end: int
    output: str | None
    means: Means
