"""Forms of English and German words for made sentences: nouns with their determiners and adjectives, by case."""

import lzma
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "sentences"
_NOUN: Final = re.compile(r"(?:(?P<pronoun>\w+):)?(?P<mass>\+)?(?P<noun>[NM])(?P<plural>s?)")
_GENDERS: Final = {"m": "masculine", "f": "feminine", "n": "neuter"}
_UMLAUTS: Final = str.maketrans("äöü", "aou")
_MISSING: Final = "-"

OTHER_KIND: Final = "other"
EVERYDAY_NOUNS: Final = _FOLDER / "nouns.en-de.tsv"

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Noun:
    """Noun in both languages. Plurals are empty, and the accusative and dative `oblique` is None, if unknown."""

    english: str
    german: str
    gender: str
    english_plural: str
    german_plural: str
    frequency: float
    kind: str
    oblique: str | None

    @property
    def forms(self) -> tuple[set[str], set[str]]:
        """All forms in English, in lower case, and in German."""
        english = {self.english.lower(), self.english_plural.lower()}
        plurals = {self.german_plural, _dative(self.german_plural)}
        return english - {""}, {self.german, self.oblique or self.german, *plurals} - {""}


@dataclass(frozen=True, slots=True)
class Filling:
    """Words for the slots of a sentence: nouns by N and M, rows of the table of adjectives by A and B."""

    nouns: Mapping[str, Noun]
    adjectives: Mapping[str, Row]


class MisfitError(ValueError):
    """A word lacks a form that a slot requires."""


@cache
def rows(name: str) -> tuple[Row, ...]:
    """Return the rows of a table in the folder `sentences`.

    Raises ValueError if a row does not have one column for each name in the first line.
    """
    header, *table = (line.split("\t") for line in (_FOLDER / f"{name}.en-de.tsv").read_text("utf-8").splitlines())
    for number, columns in enumerate(table, start=2):
        if len(columns) != len(header):
            raise ValueError(f"{name}, line {number}: {len(columns)} columns. Must be: {len(header)}")
    return tuple(dict(zip(header, columns, strict=True)) for columns in table)


def read_nouns(path: Path) -> list[Noun]:
    """Return the nouns of a table that can be inflected.

    A line has English, German, gender (m, f or n), English plural, German plural and frequency, separated by tabs.
    """
    nouns = list(_inflected(path))
    # A compound has the gender of its last part: in a table, too, except for errors.
    genders: dict[str, Counter[str]] = {}
    for noun in nouns:
        genders.setdefault(_head(noun), Counter())[noun.gender] += 1
    return [noun for noun in nouns if 2 * genders[_head(noun)][noun.gender] >= genders[_head(noun)].total()]


def _head(noun: Noun) -> str:
    """Return the last part of a noun that is in the lists of kinds, or else all of it."""
    entry, kind = _entry(noun.german, "kinds") or ("", OTHER_KIND)
    return noun.german if kind == OTHER_KIND else entry


def _inflected(path: Path) -> Iterator[Noun]:
    open_file = lzma.open if path.suffix == ".xz" else open
    with open_file(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            english, german, gender, *plurals, frequency = line.rstrip("\n").split("\t")
            if not all(map(_is_plural, (english, german), plurals)):
                plurals = ["", ""]
            _, kind = _entry(german, "kinds") or ("", OTHER_KIND)
            if _declension(german) == "left_out" or not (plurals[0] or _has_singular(english, german, gender, kind)):
                continue
            if gender == "m" and german == plurals[1] + "r":
                continue  # declined as an adjective
            oblique = _oblique(german, plurals[1]) if gender == "m" else german
            yield Noun(english, german, gender, plurals[0], plurals[1], float(frequency), kind, oblique)


def _is_plural(singular: str, plural: str) -> bool:
    """Return whether both are forms of one word: some tables name the plural of a compound."""
    starts = [word[:2].lower().translate(_UMLAUTS) for word in (singular, plural)]
    return starts[0] == starts[1] and abs(len(plural) - len(singular)) <= 3


def _has_singular(english: str, german: str, gender: str, kind: str) -> bool:
    is_infinitive = gender == "n" and kind == OTHER_KIND and _follows("infinitive", german)
    return not is_infinitive and not _follows("only_plural", english)


def _oblique(german: str, plural: str) -> str | None:
    """Return accusative and dative of a masculine noun."""
    if _declension(german) == "strong":
        return german
    if plural in (german + "n", german + "en"):
        return plural
    return None if not plural and _follows("weak", german) else german


def _declension(german: str) -> str:
    _, name = _entry(german, "declension") or ("", "")
    return name


def _dative(plural: str) -> str:
    return plural + "n" if _follows("dative_with_n", plural) else plural


@cache
def _lists(name: str) -> dict[str, str]:
    tables: dict[str, dict[str, str]] = tomllib.loads((_FOLDER / "nouns.en-de.toml").read_text("utf-8"))
    return tables[name]


def _follows(rule: str, word: str) -> bool:
    return re.search(_lists("rules")[rule], word, re.IGNORECASE) is not None


@cache
def _entries(name: str) -> tuple[tuple[str, str], ...]:
    """Return the entries of all lists of a table, longest first, each with the name of its list."""
    entries = [(entry, found) for found, text in _lists(name).items() for entry in text.split()]
    return tuple(sorted(entries, key=lambda entry: -len(entry[0])))


def _entry(word: str, name: str) -> tuple[str, str] | None:
    """Return the longest entry that a word ends with, and the name of its list."""
    whole = f"={word.lower()}"
    return next((entry for entry in _entries(name) if whole.endswith(entry[0])), None)


class Grammar:
    """Texts of slots. Both methods raise MisfitError if a word lacks the form."""

    def __init__(self) -> None:
        self._determiners = {row["key"]: row for row in rows("determiners")}
        self._endings = {(row["endings"], row["case"]): row for row in rows("endings")}

    def english(self, slot: str, filling: Filling) -> str:
        """Return an English phrase; the article is chosen by the word that follows it."""
        phrase = slot.removeprefix("a ")
        has_article = phrase != slot
        words = [self._english_word(word, filling, is_counted=has_article) for word in phrase.split(" ")]
        return " ".join([_article(words[0]), *words] if has_article else words)

    def _english_word(self, word: str, filling: Filling, *, is_counted: bool) -> str:
        if word in filling.adjectives:
            return filling.adjectives[word]["english"]
        match = _NOUN.fullmatch(word)
        if match is None:
            return word
        noun = filling.nouns[match["noun"]]
        if match["mass"] and noun.english_plural and noun.kind != "drink":
            raise MisfitError(f"{noun.english} is counted")
        if is_counted or match["plural"]:
            _known(noun.english_plural)
        return noun.english_plural if match["plural"] else noun.english

    def german(self, slot: str, filling: Filling) -> str:
        """Return a German phrase: determiner and adjectives agree with the noun in gender, number and case."""
        if slot in filling.adjectives:
            return _known(filling.adjectives[slot]["predicate"])
        *words, last = slot.split(" ")
        match = _NOUN.fullmatch(last)
        if match is None:
            raise ValueError(f"{{{slot}}} has no noun")
        noun = filling.nouns[match["noun"]]
        column = "plural" if match["plural"] else _GENDERS[noun.gender]
        if match["pronoun"]:
            return _known(self._determiners[match["pronoun"]][column])
        determiner, *stems = words
        row = self._determiners[determiner]
        ending = self._endings[row["endings"], row["case"]][column]
        adjectives = [self._stem(stem.removesuffix("-"), filling) + ending for stem in stems]
        phrase = [_known(row[column]) if row[column] else "", *adjectives, _noun(noun, row["case"], match["plural"])]
        return " ".join(filter(None, phrase))

    @staticmethod
    def _stem(stem: str, filling: Filling) -> str:
        return filling.adjectives[stem]["stem"] if stem in filling.adjectives else stem


def _noun(noun: Noun, case: str, plural: str) -> str:
    if plural:
        return _known(_dative(noun.german_plural) if case == "dative" else noun.german_plural)
    return noun.german if case == "nominative" else _known(noun.oblique)


def _known(form: str | None) -> str:
    if not form or form == _MISSING:
        raise MisfitError("the word lacks this form")
    return form


def _article(word: str) -> str:
    return "an" if _follows("an", word) and not _follows("a", word) else "a"
