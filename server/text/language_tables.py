"""Words and habits of languages, from `data/LANGUAGE.toml`.

Words in a file are separated by white space; `_` stands for a space in one. In lower case, abbreviations, starters,
conjunctions and words of address match any case, and with a capital only themselves; other words match as written. A
language without a file has an empty table: its texts get what is right in any language.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Words = tuple[str, ...]

_FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Abbreviations:
    """Abbreviations, by their effect on the full stop behind them; `z.b` is "z. B." and "z.B."."""

    inside: Words  # never the end of a sentence: titles, and words that need another one behind them
    last: Words  # the end before a capital: they stand at the end of a list or a phrase
    either: Words  # the end only before a word that usually begins a sentence
    numbered: Words  # inside a sentence before a number, a Roman one included
    numbered_endings: Words = ()  # of compounds before a number


@dataclass(frozen=True, slots=True)
class SentenceHabits:
    """Habits besides abbreviations that show where sentences end."""

    first_person: Words = ()  # the pronoun
    first_person_has_capital: bool = False  # inside a sentence, too
    has_inner_capitals: bool = False  # nouns, days or adjectives have them
    has_ordinals: bool = False  # a number with a full stop is an ordinal number
    small_beginnings: Words = ()  # before the first capital of a sentence
    sounds: Words = ()  # words without vowels that are not abbreviations
    units: Words = ()  # behind numbers; those of the International System need no table
    midday: Words = ()  # abbreviations behind times
    behind_midday: Words = ()  # days, months and time zones
    prepositions_of_time: Words = ()  # at the beginning of a sentence


@dataclass(frozen=True, slots=True)
class AddressWords:
    """Words that only one form of address has; `*` stands for any beginning of a word."""

    anywhere: Words = ()
    capital: Words = ()  # count with a capital inside a sentence only
    initial: Words = ()  # verbs that count at the beginning of a sentence: imperatives


@dataclass(frozen=True, slots=True)
class Address:
    """Formal and informal address."""

    formal: AddressWords
    informal: AddressWords
    please: Words = ()  # before imperatives


@dataclass(frozen=True, slots=True)
class LanguageTable:
    """The table of one language; what its file lacks is empty or None."""

    abbreviations: Abbreviations | None = None
    sentences: SentenceHabits = SentenceHabits()
    address: Address | None = None
    starters: Words = ()  # usually begin a sentence if they have a capital behind a full stop
    conjunctions: Words = ()
    articles: Words = ()  # those that are one word with a preposition included
    endings: Words = ()  # of nouns and adjectives: a stem with one is nearly always a form of the same word
    second_person: Words = ()  # in every sentence with an address but imperatives


_SECTIONS: dict[str, type] = {
    "abbreviations": Abbreviations,
    "sentences": SentenceHabits,
    "address": Address,
    "formal": AddressWords,
    "informal": AddressWords,
}
_EMPTY = LanguageTable()


@cache
def languages() -> Words:
    """Return the codes of the languages with a table, in alphabetical order."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def table_of(language: str) -> LanguageTable:
    """Return the table of a language such as `en` or `pt-BR`; an empty one if there is no file for it."""
    code = language.partition("-")[0].lower()
    return _read(code) if code in languages() else _EMPTY


@cache
def _read(code: str) -> LanguageTable:
    content = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    return LanguageTable(**_values(content))


def _values(section: dict[str, Any]) -> dict[str, Any]:
    return {key: _value(key, content) for key, content in section.items()}


def _value(key: str, content: str | bool | dict[str, Any]) -> object:
    if isinstance(content, dict):
        return _SECTIONS[key](**_values(content))
    return tuple(word.replace("_", " ") for word in content.split()) if isinstance(content, str) else content
