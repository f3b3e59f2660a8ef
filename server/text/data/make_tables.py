"""Write number_words.tsv and calendars.tsv. README.md in this folder has the command; serving needs the tables only."""

import json
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from babel import Locale
from babel.core import get_global
from babel.localedata import locale_identifiers
from babel.units import UnknownUnitError, format_unit

FOLDER = Path(__file__).parent
VALUES = [*range(101), *range(200, 1000, 100), *(10**power for power in range(3, 13))]
LARGE = 1000  # values that stand as words after a number: 3 million
WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0900-\u0dff\u0e00-\u109f\u1780-\u17ff'\u2019\u200c\u200d])*")
OTHER_SCRIPTS = ("hi", "kk", "zh")  # tables of romanized text in CLDR, of which the words are English
OTHER_CODES = {"kz": "kk"}
SAME_TABLES = {"nb": "no", "nn": "no"}

# Years of a calendar less those of the Gregorian one, which begin at other times, from 1880 to 2100.
OFFSETS = {
    "buddhist": [543],
    "coptic": [-284, -283],
    "ethiopic": [-8, -7],
    "hebrew": [3760, 3761],
    "indian": [-79, -78],
    "islamic": [*range(-583, -576)],
    "japanese": [-1867, -1911, -1925, -1988, -2018],
    "persian": [-622, -621],
    "roc": [-1911],
}

# Units of the United States and the United Kingdom, and the scales and offsets of metric ones that replace them; weeks,
# which some languages count as days.
UNITS = {
    "area-acre": "0.404686 0|4046.86 0",
    "duration-week": "7 0",
    "length-foot": "0.3048 0|30.48 0|0.092903 0",
    "length-inch": "2.54 0|25.4 0",
    "length-mile": "1.609344 0|2.58999 0|0.44704 0",
    "length-yard": "0.9144 0",
    "mass-ounce": "28.3495 0",
    "mass-pound": "0.453592 0",
    "speed-mile-per-hour": "1.609344 0|0.44704 0",
    "temperature-fahrenheit": "0.555556 -17.7778",
    "temperature-generic": "0.555556 -17.7778",
    "volume-gallon": "3.78541 0",
}


def main(preferences: Path) -> None:
    """Write both tables; `preferences` is CLDR's calendarPreferenceData.json."""
    words: dict[tuple[str, int], set[tuple[str, ...]]] = defaultdict(set)
    for language, value, text in [*spelled(), *compact()]:
        if form := tuple(WORD.findall(unicodedata.normalize("NFKC", text).casefold())):
            words[language, value].add(form)
    for (language, value), forms in words.items():
        ones = words.get((language, 1), set()) if value >= 100 and value == 10 ** (len(str(value)) - 1) else set()
        forms |= {rest for form in forms if (rest := without_one(form, ones))}
    for language, other in SAME_TABLES.items():
        for value in VALUES:
            words[language, value] |= words[other, value]
    with (FOLDER / "number_words.tsv").open("w", encoding="utf-8") as file:
        file.write("language\tvalue\twords\n")
        for (language, value), forms in sorted(words.items()):
            file.write(f"{language}\t{value}\t{'|'.join(' '.join(form) for form in shortest(forms))}\n")
    with (FOLDER / "units.tsv").open("w", encoding="utf-8") as file:
        file.write("language\tscales and offsets\twords\n")
        for (language, factors), names in sorted(units().items()):
            file.write(f"{language}\t{factors}\t{'|'.join(sorted(names))}\n")
    with (FOLDER / "calendars.tsv").open("w", encoding="utf-8") as file:
        file.write("language\toffsets\n")
        for language, offsets in sorted(calendars(preferences).items()):
            file.write(f"{language}\t{' '.join(map(str, sorted(offsets)))}\n")


def spelled() -> Iterator[tuple[str, int, str]]:
    """Yield languages, values and their words: cardinals and ordinals in all forms of CLDR's rules and num2words."""
    from num2words import CONVERTER_CLASSES, num2words  # type: ignore[import-not-found,unused-ignore]
    from unicode_rbnf import FormatPurpose, RbnfEngine  # type: ignore[import-not-found,unused-ignore]
    from unicode_rbnf.engine import NoRuleForNumberError  # type: ignore[import-not-found,unused-ignore]

    for tag in RbnfEngine.get_supported_languages():
        engine = RbnfEngine.for_language(tag)
        for value in VALUES:
            for purpose in (FormatPurpose.CARDINAL, FormatPurpose.ORDINAL):
                try:
                    found = engine.format_number(value, purpose).text_by_ruleset.values()
                except (NoRuleForNumberError, ValueError):
                    continue  # CLDR has no such rules for the language
                yield from ((language_of(tag), value, text) for text in found)
    for tag in CONVERTER_CLASSES:
        for value in VALUES:
            for kind in ("cardinal", "ordinal"):
                try:
                    yield language_of(tag), value, str(num2words(value, lang=tag, to=kind))
                except (ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError):
                    continue  # num2words lacks the form


def compact() -> Iterator[tuple[str, int, str]]:
    """Yield the words of powers of ten after a number, from CLDR's compact formats."""
    for tag in locale_identifiers():
        locale = Locale.parse(tag)
        if locale.script == "Latn" and locale.language in OTHER_SCRIPTS:
            continue
        for patterns in chain.from_iterable(each.values() for each in locale.compact_decimal_formats.values()):
            for power, pattern in patterns.items():
                text = re.sub(r"'(.)'", r"\1", str(pattern.pattern))
                exponent, letters = len(power) - text.count("0"), "".join(filter(str.isalpha, text))
                if 10**exponent >= LARGE and (not letters.isascii() or len(letters) > 1):
                    yield language_of(tag), 10**exponent, text


def units() -> dict[tuple[str, str], set[str]]:
    """Return the words for units, of each language and each replacement."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for tag in locale_identifiers():
        for unit, factors in UNITS.items():
            for length in ("long", "short"):
                for number in (1, 2, 5):
                    try:
                        words = WORD.findall(format_unit(number, unit, length, locale=tag).casefold())
                    except UnknownUnitError:
                        continue
                    if words and (len(words[0]) > 2 or not words[0].isascii()):
                        found[language_of(tag), factors].update(words[: len(words) == 1 or unit.startswith("temp")])
    return {key: words for key, words in found.items() if words}


def language_of(tag: str) -> str:
    """Return the primary language of a tag."""
    language = tag.partition("_")[0]
    return OTHER_CODES.get(language, language)


def beginning(word: str) -> str:
    """Return a word without the part that changes in most inflections."""
    if unicodedata.bidirectional(word[0]) in ("AL", "R"):
        return word[:-2] if len(word) > 4 else word  # endings of Semitic languages
    return word[: len(word) - len(word) // 4] if word.upper() != word else word


def without_one(form: tuple[str, ...], ones: set[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the words of a power of ten without the word for one before it."""
    for one in sorted(ones, key=lambda one: -len("".join(one))):
        if len(form) > len(one) and form[: len(one)] == one:
            return form[len(one) :]
        if len(one) == len(form) == 1 and form[0].startswith(one[0]) and len(form[0]) > len(one[0]) + 2:
            return (form[0].removeprefix(one[0]),)
    return ()


def shortest(words: set[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the beginnings of words, less the forms that are found wherever another one is found."""
    kept: list[tuple[str, ...]] = []
    forms = {tuple(map(beginning, form)) for form in words}
    for form in sorted(forms, key=lambda form: (sum(map(len, form)), form)):
        if not any(all(any(part in word for word in form) for part in other) for other in kept):
            kept.append(form)
    return kept


def calendars(preferences: Path) -> dict[str, set[int]]:
    """Return the years that the calendars of a language's main territory differ by."""
    territories = json.loads(preferences.read_text(encoding="utf-8"))["supplemental"]["calendarPreferenceData"]
    found: dict[str, set[int]] = defaultdict(set)
    for tag in locale_identifiers():
        if Locale.parse(tag).territory:
            continue
        territory = str(get_global("likely_subtags").get(tag, "")).rpartition("_")[2]
        for calendar in territories.get(territory, []):
            found[language_of(tag)].update(OFFSETS.get(calendar.partition("-")[0], []))
    return {language: offsets for language, offsets in found.items() if offsets}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
