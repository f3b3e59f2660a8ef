"""Formal and informal address in translations: which forms a text has, and their words.

Rules find words that only one form of address has. A text without them is neutral, and may be right for both.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache

import regex

from server.text.language_tables import Address, AddressWords, Words, languages, table_of


class Formality(StrEnum):
    """A form of address."""

    FORMAL = "formal"
    INFORMAL = "informal"

    @property
    def opposite(self) -> "Formality":
        """The other form of address."""
        return Formality.INFORMAL if self is Formality.FORMAL else Formality.FORMAL


_SENTENCE_START = r"(?:^|[.!?…]\s+)[\"'“”„«»‹›(¿¡\-–—\s]*"
_INSIDE = r"(?<=[\p{L}\p{N},;]\s)"


def has_formality(language: str) -> bool:
    """Return whether there are rules for a target language such as `de` or `pt-BR`."""
    return table_of(language).address is not None


def formality_languages() -> tuple[str, ...]:
    """Return the languages with rules, in alphabetical order."""
    return tuple(filter(has_formality, languages()))


class FormalityRules:
    """The rules of one target language. Immutable, so threads may share it."""

    def __init__(self, address: Address) -> None:
        self._words = {Formality.FORMAL: address.formal, Formality.INFORMAL: address.informal}
        self._addresses = {form: _inside(words) for form, words in self._words.items()}
        self._initials = {
            form: _at_start(words.initial, please=address.please, not_before=self._words[form.opposite].capital)
            for form, words in self._words.items()
        }
        # `Sie sind` is a plural, too, unless the source has a second person.
        self._capitals = {form: _at_start(words.capital) for form, words in self._words.items()}

    def forms(self, source: str, source_language: str, translation: str) -> set[Formality]:
        """Return the forms of address in a translation.

        A source shows whether there is an address at all if its language has a table of pronouns.
        """
        translation = translation.replace("’", "'")
        pronouns = table_of(source_language).second_person
        is_address = not pronouns or bool(_any_word(pronouns).search(source))
        patterns = [self._initials, *([self._addresses] if is_address else [])]
        if pronouns and is_address:
            patterns.append(self._capitals)
        return {form for form in Formality for pattern in patterns if pattern[form].search(translation)}

    def spellings(self, form: Formality) -> Iterator[str]:
        """Yield the pronouns and verbs of a form of address, with and without a capital."""
        words = self._words[form]
        yield from words.capital
        for word in words.anywhere:
            yield word
            yield word[:1].upper() + word[1:]
        yield from (verb[:1].upper() + verb[1:] for verb in words.initial if not verb.startswith("*"))


@cache
def formality_rules(language: str) -> FormalityRules:
    """Return the rules of a target language that `has_formality`."""
    address = table_of(language).address
    assert address is not None, f"no words of address for {language}"
    return FormalityRules(address)


@cache
def _any_word(words: Words) -> "regex.Pattern[str]":
    return regex.compile(rf"\b{_any_of(words)}\b")


def _inside(words: AddressWords) -> "regex.Pattern[str]":
    anywhere, capital = _any_of(words.anywhere), _any_of(words.capital)
    return regex.compile(rf"(?<![\w'\-]){anywhere}(?:(?<=')|(?!\w))|{_INSIDE}{capital}\b")


def _at_start(words: Words, please: Words = (), not_before: Words = ()) -> "regex.Pattern[str]":
    begin = rf"{_SENTENCE_START}(?:{_any_of(please)},?\s+)?"
    return regex.compile(rf"{begin}{_any_of(words)}(?!\w|\s+{_any_of(not_before)}\b)")


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern of these words: in lower case they match any case, and `*` matches any beginning."""
    exact = [regex.escape(word).replace(r"\*", r"\w+") for word in words if not word.islower()]
    loose = [regex.escape(word).replace(r"\*", r"\w+") for word in words if word.islower()]
    alternatives = [*exact, f"(?i:{'|'.join(loose)})"] if loose else exact
    return f"(?:{'|'.join(alternatives) or '(?!)'})"
