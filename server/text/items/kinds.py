"""Kinds of items that must survive a translation, and their properties."""

from dataclasses import dataclass
from enum import StrEnum


class ItemKind(StrEnum):
    """The kind of an item; it decides how an answer is compared, and what may stand for the item."""

    NUMBER = "number"
    PERCENTAGE = "percentage"
    MONEY = "money"
    QUANTITY = "quantity"
    RANGE = "range"  # 3-5, 10–12 km, a score 3:2, a fraction 1/2
    NUMERAL = "numeral"  # a Roman number behind a name
    DATE = "date"
    TIME = "time"
    PHONE = "phone"
    ACCOUNT = "account"  # IBANs, cards and other groups of digits
    VERSION = "version"
    CODE = "code"  # order and part numbers
    EMAIL = "email"
    URL = "url"
    PATH = "path"
    FILE = "file"
    NAME = "name"  # @name
    TAG = "tag"  # #tag
    IDENTIFIER = "identifier"  # --options, snake_case
    PLACEHOLDER = "placeholder"
    ENTITY = "entity"
    CODE_SPAN = "code_span"
    MARKUP = "markup"  # an element that is not translated; the model cannot read it
    WORD = "word"  # a word with characters that the vocabulary lacks
    SYMBOL = "symbol"  # an emoji or another picture
    SIGN = "sign"  # a sign between words: a dash, a quotation mark, a currency


# Compared by value: the answer may have another notation.
NUMERIC = frozenset((ItemKind.NUMBER, ItemKind.PERCENTAGE, ItemKind.MONEY, ItemKind.QUANTITY))
VALUES = NUMERIC | {ItemKind.RANGE, ItemKind.NUMERAL, ItemKind.DATE, ItemKind.TIME, ItemKind.PHONE, ItemKind.ACCOUNT}
# A sentence is complete without them: they are placed beside the words beside which they stood.
PLACED = frozenset((ItemKind.SYMBOL, ItemKind.SIGN, ItemKind.ENTITY))
# The model cannot read them as they are.
HIDDEN = frozenset((ItemKind.MARKUP, ItemKind.WORD))
# They may have a full stop inside, which ends no sentence.
OPAQUE = frozenset(ItemKind) - NUMERIC - PLACED


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of a text that must survive."""

    start: int
    end: int
    kind: ItemKind
