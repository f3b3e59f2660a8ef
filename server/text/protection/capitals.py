"""Upper and lower case of words and sentences, by language."""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import cache

import regex

# Shorter texts may be abbreviations.
_MIN_LETTERS = 4
_DOTTED_I = frozenset(("tr", "az"))
# A sentence with a capital first and a word of at least five small letters behind it: most sentences, within a few
# characters. `re` takes a third of the time that `regex` takes.
_USUAL = re.compile(r"[\"'„“«(]?[A-ZÀ-ÖØ-Þ][^\n]*? (?!(?:after|under|about|durch|unter|eine[mnrs])\b)[a-zß-öø-ÿ]{5}")
# Words that have small letters in titles.
_SMALL_WORDS = {
    "en": "a an the and or nor but of in on at to for by with from as vs via per into over after under about",
    "de": "der die das dem den des ein eine einem einen einer eines und oder in im an am auf zu zum zur von vom mit "
    "für bei beim aus nach über unter durch als wie",
    "fr": "le la les l un une des du de d et ou à au aux en dans sur pour par avec sans chez",
    "es": "el la los las un una unos unas de del y e o u a al en con por para sin",
    "it": "il lo la i gli le un uno una di del della dei degli delle e o a al alla in nel nella con per da dal su",
    "pt": "o a os as um uma de do da dos das e ou em no na nos nas com por para ao à",
    "nl": "de het een en of van in op aan te voor met bij naar uit over door",
    "pl": "i a w we z ze na do o od po za dla lub oraz u",
}


class Casing(StrEnum):
    """The use of capitals in a sentence."""

    USUAL = "usual"
    UPPER = "upper"  # all caps
    TITLE = "title"  # A Capital for Every Word, Perhaps Without Small Ones
    LOWER = "lower"  # no capital at all


def is_all_caps(text: str) -> bool:
    """Return whether all letters are capitals, and there are enough of them to be words; `ß` counts as a capital."""
    letters = [character for character in text if character.isupper() or (character.islower() and character != "ß")]
    if not letters or any(character.islower() for character in letters):
        return False
    return len(letters) >= _MIN_LETTERS or (len(letters) >= 2 and len(text.split()) >= 2)


def is_surely_usual(text: str) -> bool:
    """Return whether a sentence has neither all caps, nor a title's capitals, nor small letters only; fast."""
    return _USUAL.match(text) is not None


def lower(word: str, language: str) -> str:
    """Return a word in lower case."""
    if language.partition("-")[0] in _DOTTED_I:
        word = word.replace("İ", "i").replace("I", "ı")
    return word.lower()


def upper(word: str, language: str) -> str:
    """Return a word in all caps."""
    return (word.replace("i", "İ") if language.partition("-")[0] in _DOTTED_I else word).upper()


def with_first(word: str, change: Callable[[str, str], str], language: str) -> str:
    """Return a word whose first letter has changed, as `upper` or `lower` do."""
    num_first = 2 if language.partition("-")[0] == "nl" and word[:2].lower() == "ij" else 1
    return change(word[:num_first], language) + word[num_first:]


@cache
def small_words(language: str) -> frozenset[str]:
    """Return the words that may have a small letter in a title."""
    return frozenset(_SMALL_WORDS.get(language.partition("-")[0], "").split())


def is_small_word(word: str, language: str) -> bool:
    """Return whether a word may have a small letter in a title."""
    return word.lower() in small_words(language)


def in_title(word: str, language: str, *, has_small_words: bool) -> str:
    """Return a word as it is in a title; with `has_small_words` articles and the like have no capital."""
    if has_small_words and is_small_word(word, language):
        return word
    return with_first(word, upper, language) if regex.match(r"\p{Ll}", word) else word
