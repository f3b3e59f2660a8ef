"""Pairs of sentences that are made of words: a table of nouns, and the tables of the folder `sentences`.

A frame is a sentence with slots in braces. {N} is a noun, {Ns} its plural, {+N} a noun that is not counted; {a A N} has
an article and an adjective. A German slot is written as for a masculine noun, and the form of its determiner names the
case: {den A- N} becomes "die neue Lampe" in the accusative, and {den Ns} "die Lampen". {den neu- N} has an adjective of
its own, {nom N} no determiner, and {er:N} is a pronoun. M is a second noun, B a second adjective, and {time} an item.
"""

import lzma
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from random import Random
from typing import Annotated, Final

import typer
from babel import Locale
from babel.dates import get_day_names, get_month_names
from babel.numbers import format_decimal

from model.training.parallel_text import Pair, read_pairs

_FOLDER: Final = Path(__file__).parent / "sentences"
_NOUN: Final = re.compile(r"(?:(?P<pronoun>\w+):)?(?P<mass>\+)?(?P<noun>[NM])(?P<plural>s?)")
_GENDERS: Final = {"m": "masculine", "f": "feminine", "n": "neuter"}
_UMLAUTS: Final = str.maketrans("äöü", "aou")
_MISSING: Final = "-"

OTHER_KIND: Final = "other"
EVERYDAY_NOUNS: Final = _FOLDER / "nouns.en-de.tsv"

Row = Mapping[str, str]
_LOCALES: Final = (Locale.parse("en"), Locale.parse("de"))
_SLOT: Final = re.compile(r"\{([^{}]+)\}")
_WORD: Final = re.compile(r"[\w'’-]+")
_ANY_KIND, _NO_NOUN = "*", "-"
_OWN_SHARE: Final = 2 / 3
_MAX_TERM_WORDS: Final = 3
_MIN_TOGETHER: Final = 2  # one can be chance
_COMMON: Final = 10


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


@cache
def _adjectives(kind: str) -> list[Row]:
    """Return the adjectives for nouns of a kind."""
    return [row for row in rows("adjectives") if kind in row["kinds"].split("|")]


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


class Items:
    """Generator of times, dates, amounts and numbers in the notations of both languages."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._notations: dict[str, list[Row]] = {}
        for row in rows("items"):
            self._notations.setdefault(row["item"], []).append(row)

    def pair(self, item: str) -> Pair:
        """Return an item of this name in both languages."""
        row = self._random.choice(self._notations[item])
        first, last = map(int, (row["hours"] or "0-23").split("-"))
        english, german = self._values(self._random.randint(first, last))
        return row["english"].format_map(english), row["german"].format_map(german)

    def _values(self, hour: int) -> tuple[dict[str, str], dict[str, str]]:
        random = self._random
        count = random.randint(1, random.choice((10, 100)))
        ending = "th" if count // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
        day = date.fromordinal(random.randrange(date(1950, 1, 1).toordinal(), date(2040, 1, 1).toordinal()))
        shared = {
            "h": f"{hour % 12 or 12}",
            "H": f"{hour}",
            "HH": f"{hour:02}",
            "mm": f"{random.randrange(0, 60, random.choice((1, 5, 15))):02}",
            "day": f"{day.day}",
            "year": f"{day.year}",
            "iso": day.isoformat(),
            "count": f"{count}",
            "nth": f"{count}{ending}",
            "n2": f"{random.randrange(2, 100)}",
            "letters": "".join(random.choices("ABCDEFGHKLMNPRSTUVWXYZ", k=random.randint(1, 3))),
            "digits2": f"{random.randrange(10**2):02}",
            "digits3": f"{random.randrange(10**2, 10**3)}",
            "digits4": f"{random.randrange(10**4):04}",
        }
        number = 1 + random.randint(1, 10 ** random.randint(1, 7))
        money = random.randrange(100, 10 ** random.randint(3, 7)) / 100
        decimal = random.randrange(1, 10 ** random.randint(2, 4)) / 10
        english, german = (
            {
                "n": format_decimal(number, "#,##0" if number > 9999 else "0", locale=locale),
                "money": format_decimal(money, "#,##0.00", locale=locale),
                "decimal": format_decimal(decimal, "#,##0.0", locale=locale),
                "month": get_month_names("wide", locale=locale)[day.month],
                "weekday": get_day_names("wide", locale=locale)[day.weekday()],
            }
            for locale in _LOCALES
        )
        return shared | english, shared | german


class SentenceMaker:
    """Generator of pairs; equal seeds give equal pairs. The second noun of a frame is one of these."""

    def __init__(self, random: Random, nouns: Iterable[Noun]) -> None:
        self._random = random
        self._grammar = Grammar()
        self._frames = [(row["noun"].split("|"), row) for row in rows("frames")]
        self._seconds: dict[str, list[Noun]] = {}
        for noun in nouns:
            if noun.english_plural and noun.oblique:
                self._seconds.setdefault(noun.kind, []).append(noun)

    def with_noun(self, noun: Noun, number: int) -> list[Pair]:
        """Return up to this number of pairs, each in another frame, most of them in frames for the kind of the noun."""
        own, common = (
            self._random.sample(fitting, len(fitting))
            for fitting in ([row for kinds, row in self._frames if kind in kinds] for kind in (noun.kind, _ANY_KIND))
        )
        num_own = int(number * _OWN_SHARE)
        pairs = (self._filled(row, noun) for row in [*own[:num_own], *common, *own[num_own:]])
        return [pair for pair in pairs if pair is not None][:number]

    def _filled(self, frame: Row, noun: Noun) -> Pair | None:
        nouns = {"N": noun}
        if frame["second"]:
            others = [other for other in self._seconds.get(frame["second"], ()) if other.german != noun.german]
            if not others:
                return None
            nouns["M"] = self._random.choice(others)
        common, fitting = _adjectives(_ANY_KIND), _adjectives(noun.kind)
        first = self._random.choice(self._random.choice((fitting or common, common)))
        second = self._random.choice([row for row in common if row != first])
        filling = Filling(nouns, {"A": first, "B": second})
        try:
            return (
                _tidy(_SLOT.sub(lambda slot: self._grammar.english(slot[1], filling), frame["english"])),
                _tidy(_SLOT.sub(lambda slot: self._grammar.german(slot[1], filling), frame["german"])),
            )
        except MisfitError:
            return None

    def with_verbs(self) -> Iterator[Pair]:
        """Yield every verb in all frames for its auxiliary."""
        for verb in rows("verbs"):
            for frame in rows("verb_frames"):
                slots = _SLOT.findall(frame["english"] + frame["german"])
                if frame["auxiliary"] in ("", verb["auxiliary"]) and all(verb[slot] != _MISSING for slot in slots):
                    yield _tidy(frame["english"].format_map(verb)), _tidy(frame["german"].format_map(verb))

    @staticmethod
    def with_terms(terms: Iterable[Pair]) -> Iterator[Pair]:
        """Yield terms as on buttons and in tables: with a capital letter first, and verbs without "to"."""
        for english, german in terms:
            yield _tidy(english.removeprefix("to ")), _tidy(german)

    def with_items(self, number: int) -> Iterator[Pair]:
        """Yield pairs with times, dates, amounts and numbers, this many for every frame."""
        items = Items(self._random)
        for frame in rows("frames"):
            if frame["noun"] == _NO_NOUN:
                for _ in range(number):
                    sides = [frame["english"], frame["german"]]
                    for slot in _SLOT.findall(frame["english"]):
                        pair = items.pair(slot)
                        sides = [text.replace(f"{{{slot}}}", item, 1) for text, item in zip(sides, pair, strict=True)]
                    yield _tidy(sides[0]), _tidy(sides[1])


def _tidy(text: str) -> str:
    """Return a sentence without the blanks of empty slots, with one full stop, and with a capital letter first."""
    text = re.sub(r" +(?=[.,!?]|$)", "", re.sub(" {2,}", " ", text))
    text = re.sub(r"\.\.$", ".", text)
    return text[:1].upper() + text[1:]


class Evidence:
    """Number of pairs of parallel text in which nouns occur, alone and together with their translations."""

    def __init__(self, nouns: Iterable[Noun], pairs: Iterable[Pair]) -> None:
        known: tuple[set[str], set[str]] = (set(), set())
        for noun in nouns:
            for forms, more in zip(known, noun.forms, strict=True):
                forms |= more
        self._seen: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._together: Counter[Pair] = Counter()
        for english, german in pairs:
            words = _WORD.findall(english.lower())
            spans = (
                (start, end) for end in range(len(words) + 1) for start in range(max(0, end - _MAX_TERM_WORDS), end)
            )
            terms = known[0].intersection(" ".join(words[start:end]) for start, end in spans)
            translations = known[1].intersection(_WORD.findall(german))
            self._seen[0].update(terms)
            self._seen[1].update(translations)
            self._together.update((term, word) for term in terms for word in translations)

    def supports(self, noun: Noun) -> bool:
        """Return whether the German noun is a usual translation, or one that the text is too small to judge."""
        forms = noun.forms
        english, german = (sum(seen[form] for form in side) for seen, side in zip(self._seen, forms, strict=True))
        together = sum(self._together[first, second] for first in forms[0] for second in forms[1])
        if together >= _MIN_TOGETHER:
            return together >= 0.12 * english or together >= max(0.3 * german, 0.03 * english)
        return english <= _MIN_TOGETHER and german < _COMMON and noun.english_plural != ""


command = typer.Typer()


@command.command()
def main(
    nouns: Annotated[Path, typer.Argument(help="English, German, gender, plurals and frequency: .tsv or .tsv.xz.")],
    output: Annotated[Path, typer.Argument(help="File for the pairs: English TAB German.")],
    parallel: Annotated[list[Path] | None, typer.Option(help="Pairs that show which translations are usual.")] = None,
    terms: Annotated[list[Path] | None, typer.Option(help="Pairs of terms to take with a capital letter.")] = None,
    held_out: Annotated[list[Path] | None, typer.Option(help="File of columns with sentences to leave out.")] = None,
    num_nouns: Annotated[int, typer.Option(help="Most frequent nouns; those of known kinds come in addition.")] = 6500,
    num_frames: Annotated[
        int, typer.Option(help="Sentences for a noun; twice as many of a known kind, thrice for everyday ones.")
    ] = 10,
    num_items: Annotated[int, typer.Option(help="Sentences for a frame of times, dates, amounts or numbers.")] = 200,
    seed: Annotated[int, typer.Option(help="Equal seeds make equal files.")] = 1,
) -> None:
    """Make sentences of a table of nouns, for the training of English and German models."""
    everyday = read_nouns(EVERYDAY_NOUNS)
    words = {word for noun in everyday for word in (noun.english, noun.german)}
    known = [noun for noun in read_nouns(nouns) if words.isdisjoint((noun.english, noun.german))]
    if parallel:
        evidence = Evidence(known, (pair for path in parallel for pair in read_pairs(path)))
        known = list(filter(evidence.supports, known))
    known.sort(key=lambda noun: -noun.frequency)
    of_kinds = [noun for noun in known if noun.kind != OTHER_KIND]
    frequent = [noun for noun in known[:num_nouns] if noun.kind == OTHER_KIND]
    random = Random(seed)
    maker = SentenceMaker(random, [*everyday, *of_kinds])
    made = [*maker.with_verbs(), *maker.with_items(num_items)]
    made += maker.with_terms(pair for path in terms or () for pair in read_pairs(path))
    for factor, group in ((3, everyday), (2, of_kinds), (1, frequent)):
        made += [pair for noun in group for pair in maker.with_noun(noun, factor * num_frames)]
    lines = (line for path in held_out or () for line in path.read_text("utf-8").splitlines())
    left_out = {_comparable(column) for line in lines for column in line.split("\t")}
    pairs = [pair for pair in dict.fromkeys(made) if left_out.isdisjoint(map(_comparable, pair))]
    random.shuffle(pairs)
    output.write_text("".join(f"{english}\t{german}\n" for english, german in pairs), "utf-8")
    typer.echo(f"{len(pairs)} pairs are in {output}")


def _comparable(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


if __name__ == "__main__":
    command()
