"""Abbreviations, eras, Roman ordinals, dates and amounts that models misread, as models read them best."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from server.text.abbreviation_tables import BEFORE_NAMES, BEFORE_NUMBERS, BEHIND_NUMBERS, CHAT_WORDS, IN_FULL
from server.text.function_words import function_words
from server.text.items.written_dates import month_names
from server.text.protection.word_alignment import Range
from server.text.weekdays import BEFORE_DATES, WEEKDAY_ENDS, WEEKDAYS, weekday

_CHAT = {"en": r"(?<!\S)(?:b/c|pls|w/o?)(?=\s)"}
_CHAT_MARKS = (" w/", "b/c ", "pls ")
# `Karl V. war`. An `L.` alone is an initial, and so are most letters before a capital: `Otto V. Klein`.
_ORDINALS = {
    "de": r"(?<=[^\W\d_A-Z] )(?=[IVXL]+\.)(?!L\.)(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})\."
    r"(?=[,;:)]|\s+(?:[^\W_A-ZÄÖÜ]|\())"
}
_ORDINAL_ENDS = ("I.", "V.", "X.", "L.")
# `am 24.12. kam`. Behind other words such a number is that of a section.
_MONTHS = month_names("de")
_PREPOSITIONS = "Am am Ab ab Bis bis Dem dem Den den Des des Seit seit Vom vom Zum zum"
_BEFORE_DATES = "|".join(
    rf"(?<=\b{re.escape(each)})" for each in (*(f"{each} " for each in _PREPOSITIONS.split()), *BEFORE_DATES["de"])
)
_DATES = {
    "de": rf"(?=\d)(?:{_BEFORE_DATES})(?P<date>(?P<day>0?[1-9]|[12]\d|3[01])\.(?P<month>0?[1-9]|1[0-2])\.)"
    r"(?=[,;:)]|\s+[a-zäöü(])"
}
_DATE_ENDS = tuple(f".{zero}{month}." for zero in ("", "0") for month in range(1, 13))
# `1'250.- im Monat`, `20,– Euro`
_ROUND_AMOUNT = r"(?P<round>(?<=\d)[.,](?:--?|–))(?=\s+[^\W\d]|\s?[€$£]|[,;:.!?)]|\s*$)"
_ROUND_ENDS = (".-", ",-", ".–", ",–")
# Models take these units for beginnings of words, and seldom read a minus sign. `L` alone may be a name.
_LITRES = r"(?P<litres>(?<=\d)\s?[cdm]L(?!\w))"
_LITRE_ENDS = ("cL", "dL", "mL")
_MINUS = r"(?P<minus>(?<![^\s(])−(?=\d))"
# `Leser*in`, `Kolleg:innen`: the form for men of words in `er`, of others the one for women. `:in-range` is none.
_GENDERS = {
    "de": r"(?P<gender>(?<=[a-zäöüß]{3})(?:(?<=er)[*:](?:innen(?!\w)|in(?![\w-]))|[*:](?=(?:innen(?!\w)|in(?![\w-])))))"
}
_GENDER_MARKS = ("*in", ":in")

_BEGIN = r"(?<![\w.])"
_NO_UNIT = r"(?<!\d )"  # `5 min. 30 s` has minutes, and `Abs. 2 S. 1` has no page
_BEHIND = "|".join(
    f"(?<={each} )" for each in (r"[\d¼½¾]", r"\d\.", "Jahrhundert", "Jahrhunderts", r"Jh\.", "century", "centuries")
)
_BEFORE = r"\.(?=\s+\d)"
_BEFORE_NAME = r"\.(?=\s+[A-ZÄÖÜ]\w)"
# The sentence goes on behind the abbreviation, or ends there. `u. a.` at the end and `u. a. m.` are "und andere".
_INSIDE = r"(?:\.(?=[,;:)]|\s+(?!m\.)[^\W_])|(?<!u\.a)(?<!u\. a)(?=\.[\"”“’»)]*\s*$))"
# `600 BC residents` are Canadians, and `ISO 9001 CE certified` has no year: a word in small letters behind an era is a
# function word.
_ERAS = frozenset({"AD", "BC", "BCE", "CE"})
_WORD_BEHIND = re.compile(r"\s+([a-z]+)")
_ONE = re.compile(r"(?<![\d.,])1 $")
_OF_ONE = {
    "Milliarden": "Milliarde",
    "Millionen": "Million",
    "Minuten": "Minute",
    "Sekunden": "Sekunde",
    "Stunden": "Stunde",
    "hours": "hour",
    "minutes": "minute",
    "seconds": "second",
}


class SpelledOut:
    """The abbreviations of a language, as models into another one read them. Thread-safe."""

    def __init__(self, source: str, target: str) -> None:
        in_full, before, behind = (
            _with_capitals({**table.get(source, {}), **table.get(f"{source}-{target}", {})})
            for table in (IN_FULL, BEFORE_NUMBERS, BEHIND_NUMBERS)
        )
        self._source = source
        names, chat = BEFORE_NAMES.get(source, {}), CHAT_WORDS.get(source, {})
        self._in_full = {"inside": in_full, "before": before, "behind": behind, "name": names, "chat": chat}
        ordinals, dates, genders, days = (
            table.get(source, "(?!)") for table in (_ORDINALS, _DATES, _GENDERS, WEEKDAYS)
        )
        self._pattern = re.compile(
            f"{_BEGIN}(?:{_NO_UNIT}(?:(?P<before>{_any_of(before, _BEFORE)})|(?P<inside>{_any_of(in_full, _INSIDE)})"
            f"|(?P<name>{_any_of(names, _BEFORE_NAME)}))"
            f"|(?:{_BEHIND})(?P<behind>{_any_of(behind, _INSIDE)})|{dates}|{ordinals}"
            f"|(?P<weekday>{days})|(?P<chat>{_CHAT.get(source, '(?!)')}))"
            f"|{_ROUND_AMOUNT}|{_LITRES}|{_MINUS}|{genders}"
        )
        # A search for these takes a tenth of the pattern's time.
        written = [*in_full, *before, *behind, *names]
        marks = (
            *(*_ROUND_ENDS, *_LITRE_ENDS, "−"),
            *(_GENDER_MARKS if source in _GENDERS else ()),
            *(_CHAT_MARKS if source in _CHAT else ()),
        )
        self._without_stop = (*(each for each in written if not each.endswith(".")), *marks)
        self._ends = tuple(each for each in behind if each.endswith("."))
        self._parts = (
            *(*written, *marks, *WEEKDAY_ENDS.get(source, ())),
            *(_ORDINAL_ENDS if source in _ORDINALS else ()),
            *(_DATE_ENDS if source in _DATES else ()),
        )

    def in_full(self, text: str) -> str:
        """Return a text as the model reads it; fast if no full stop is inside, or behind a unit."""
        if text.find(".", 0, -1) < 0 and not text.endswith(self._ends) and not _has_any(text, self._without_stop):
            return text
        read, position = "", 0
        for start, end, in_full in self._replaced(text):
            read += text[position:start] + in_full
            position = end
        return read + text[position:] if position else text

    def ranges_in(self, text: str, ranges: Sequence[Range]) -> Sequence[Range]:
        """Return the ranges of a text as the model reads it as those of the text itself."""
        replaced = list(self._replaced(text))
        if not replaced:
            return ranges
        starts: list[int] = []  # of each character that is read
        ends: list[int] = []
        position = 0
        for start, end, in_full in (*replaced, (len(text), len(text), "")):
            starts += range(position, start)
            ends += range(position + 1, start + 1)
            starts += [start] * len(in_full)
            ends += [end - text.endswith(".", start, end)] * len(in_full)  # the full stop is a word of its own
            position = end
        starts.append(len(text))
        return [(starts[first], ends[last - 1] if last > first else starts[first]) for first, last in ranges]

    def _replaced(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the ranges that the model reads in another form, and these forms."""
        if not _has_any(text, self._parts):
            return
        for match in self._pattern.finditer(text):
            start, end = match.span()
            if match.lastgroup is None:
                if not text[text.rfind(" ", 0, start - 1) + 1].isupper():
                    continue  # `im II. und III. Teil`
                yield start, end, text[start : end - 1]
                continue
            if match.lastgroup == "weekday":
                yield start, end, weekday(match.group(), self._source)
                continue
            if match.lastgroup in ("round", "gender"):
                yield start, end, ""
                continue
            if match.lastgroup == "litres":
                yield start, end, match.group().lower()
                continue
            if match.lastgroup == "minus":
                yield start, end, "-"
                continue
            if match.lastgroup == "date":
                yield start, end, f"{int(match['day'])}. {_MONTHS[int(match['month']) - 1]}"
                continue
            abbreviations = self._in_full[match.lastgroup]
            written = match.group()
            in_full = abbreviations.get(written) or abbreviations[written + "."]
            if written in _ERAS and not _may_follow_an_era(text, end):
                continue
            if text[end : end + 1] == ".":
                in_full = in_full.removesuffix(".")  # one full stop for both
            if in_full in _OF_ONE and _ONE.search(text, 0, start):
                in_full = _OF_ONE[in_full]
            yield start, end, in_full


def _may_follow_an_era(text: str, position: int) -> bool:
    word = _WORD_BEHIND.match(text, position)
    return word is None or word[1] in function_words("en")


def _has_any(text: str, parts: Sequence[str]) -> bool:
    for part in parts:  # noqa: SIM110 - a third of the time of a generator
        if part in text:
            return True
    return False


def _with_capitals(abbreviations: Mapping[str, str]) -> Mapping[str, str]:
    """Return abbreviations also as they are at the beginning of a sentence."""
    capitals = {each[0].upper() + each[1:]: read[0].upper() + read[1:] for each, read in abbreviations.items()}
    return {**capitals, **abbreviations}


def _any_of(abbreviations: Mapping[str, str], behind: str) -> str:
    """Return a pattern of abbreviations.

    `behind` is a pattern of the last full stop, if they have one, and of what must follow.
    """
    patterns = [
        re.escape(each.removesuffix(".")) + (behind if each.endswith(".") else r"(?!\w)") for each in abbreviations
    ]
    return f"(?:{'|'.join(patterns)})" if patterns else "(?!)"


@cache
def spelled_out(source: str, target: str) -> SpelledOut:
    """Return the abbreviations of a language such as `de` or `de-CH`, for translations into another one."""
    return SpelledOut(source.partition("-")[0].lower(), target.partition("-")[0].lower())
