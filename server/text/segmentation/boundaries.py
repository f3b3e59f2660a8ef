"""Ends of sentences in languages with a table of abbreviations.

A sentence may end at full stops, exclamation and question marks with the closing marks behind them, before white space.
Rules about the words on both sides decide. Each looks at a bounded number of characters, so the time is linear.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import regex

from server.interface.interruption import checkpoint
from server.text.language_tables import Abbreviations, LanguageTable, table_of

_REACH = 48  # characters that the rules look at on each side

# Marks that close a quotation or a bracket stay with the sentence before them. In French, a space stands before ».
_CLOSERS = r"[\"'”’“‘»«›‹)\]}]*+(?:[\u00a0\u202f ]»[)\]]*+(?=\s|$))?"
_CANDIDATE = regex.compile(
    rf"(?<![.!?…‼⁇⁈⁉‽])(?P<mark>[.!?…‼⁇⁈⁉‽]++)(?P<closers>{_CLOSERS})(?:\s++|$)|(?P<wide>[。！？｡]++[」』”’）］】〉》]*+\s*+)"
)
_OPENERS = r"[\"'“”„‚‘’«»‹›(\[{¿¡\-–—−•*\s]*+"
_NEXT = regex.compile(rf"{_OPENERS}(?P<word>[\p{{L}}\p{{M}}\p{{N}}]++(?:['’\-][\p{{L}}\p{{M}}]++)*+)?(?P<stop>\.?)")
_WORD_BEFORE = regex.compile(r"[\p{L}\p{M}\p{N}ºª°&#+'’\-.]*+$")
_CHAIN_BEFORE = regex.compile(
    r"(?<![\p{L}\p{M}\p{N}.])(?:[\p{L}\p{M}.\-]{1,5}\.[\u00a0\u202f ]){1,3}[\p{L}\p{M}.ºª\-]{1,6}$"
)
_CONTINUATION = regex.compile(r"[:;,](?=\s|$)")  # `Ex. : le chat`
_YEAR = regex.compile(r"\s*[(\[]\d{4}[a-z]?[)\]]")  # Chen et al. (2018)
_INVERTED_MARK = regex.compile(r"[\"'“«‘(\[—–-]*[¿¡]")
_BEFORE_CAPITAL = regex.compile(r"\s*(?P<word>\S{1,4})\s+\p{Lu}")
_ROMAN = regex.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})|X+")
_ACRONYM = regex.compile(r"(?:\p{L}\p{M}*[.\-]+)+\p{L}\p{M}*")
# Capitals of names, also behind a hyphen; a lone small letter is seldom a word.
_INITIAL = regex.compile(r"(?:\p{Lu}[\p{L}\p{M}]+-)?\p{Lu}\p{M}*|\p{Ll}|(?:Th|Ch|Ph|St|Cz|Sz|Dz|Rz)")
_INITIAL_BEFORE = regex.compile(r"(?<![\p{L}\p{M}\p{N}])\p{Lu}\p{M}*$")
_VOWEL = regex.compile(r"[aeiouyàáâäãåæèéêëìíîïòóôöõøœùúûüýÿąęó]", regex.IGNORECASE)
_ORDINAL = regex.compile(r"\d{1,2}")  # longer ones are rare, and a year ends a sentence
# `5 km. Madrid` is rare, and behind an abbreviation that counts (`S. 4.`) a number is no ordinal.
_UNITS = "h|min|[kcm]?m|[km]?g|ha|[mcd]?l|km/h|m/s|[kMG]?Hz|k?W|[kM]?Ω"
_UNIT = regex.compile(_UNITS, regex.IGNORECASE)
_NUMBERED_BEFORE = regex.compile(r"(?P<word>[\p{L}º.]{1,12})\.[\u00a0\u202f ]\d{1,2}$")
_LONGEST_TITLE = 4  # letters: "At 10 a.m. Prof. Green arrived."
_TIME_ZONE = regex.compile(r"[A-Z]{2,4}")
_SHORT_PHRASE = regex.compile(r"\W*(?P<word>\w+)\W(?:[^\s,]+\s){0,4}[^\s,]+")
_SCORE = regex.compile(r"(?<!\d)\d{1,3} \p{Ll}{1,4} \d{1,3}$")
_LIST_MARKER = regex.compile(r"[\s\"'“„«»(\[*•–—-]*+(?:\d{1,3}|\p{Ll}|[IVX]{1,5})")
# A word in small letters before a full stop, and a word with a capital behind it: what most sentences have.
_USUAL_END = re.compile(r"(?:^|[^.]) ([a-zß-öø-ÿ]{3,20})\Z")
_USUAL_BEGINNING = re.compile(r"[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]")
_USUAL_REACH = 23  # characters of the longest match of `_USUAL_END`
_SMALL_BEGINNING = regex.compile(r"[^\p{L}\p{N}]*+\p{Ll}(?!\p{Lu})")
_ONE_WORD = regex.compile(r"\W*+\w*+")
_FEW_WORDS = regex.compile(r"\W*+(?:\w++\W++){0,2}\w*+")


class BoundaryRules:
    """The rules of one language. Thread-safe."""

    def __init__(self, table: LanguageTable, abbreviations: Abbreviations) -> None:
        habits = table.sentences
        self._has_ordinals = habits.has_ordinals
        self._has_inner_capitals = habits.has_inner_capitals
        self._first_person = habits.first_person
        self._first_person_has_capital = habits.first_person_has_capital
        self._small_beginnings = frozenset(habits.small_beginnings)
        self._sounds = frozenset(habits.sounds)
        self._midday = frozenset(habits.midday)
        self._behind_midday = frozenset(habits.behind_midday)
        self._prepositions_of_time = frozenset(habits.prepositions_of_time)
        self._starters = frozenset(table.starters)
        self._inside = frozenset(abbreviations.inside)
        self._last = frozenset(abbreviations.last)
        self._either = frozenset(abbreviations.either)
        self._numbered = frozenset(abbreviations.numbered)
        self._numbered_endings = abbreviations.numbered_endings
        self._measure = regex.compile(rf"\d[\u00a0\u202f ]?(?:{'|'.join((_UNITS, *habits.units))})$")
        # Abbreviations of several parts, and their beginnings: `i.d` and `i.d.r` of `i.d.r`.
        split = [each.split(".") for each in self._inside | self._last | self._either]
        self._parts = frozenset(".".join(each[:count]) for each in split for count in range(2, len(each) + 1))
        first_parts = (part.partition(".")[0] for part in self._parts)
        self._abbreviations = self._inside.union(self._last, self._either, self._numbered, first_parts)

    def sentences(self, line: str) -> Iterator[str]:
        """Yield the sentences of a line with the white space behind them; together they are the line."""
        start = looked = 0
        has_words = False  # marks alone are no sentence: "… and so on"
        for match in _CANDIDATE.finditer(line):
            checkpoint()
            has_words = has_words or any(map(str.isalnum, line[looked : match.start()]))
            looked = match.end()
            if has_words and looked < len(line) and (match["wide"] or self._ends(line, start, match)):
                yield line[start:looked]
                start, has_words = looked, False
        if start < len(line):
            yield line[start:]

    def _ends(self, line: str, start: int, match: "regex.Match[str]") -> bool:
        """Return whether the sentence that begins at `start` ends with this candidate."""
        if self._surely_ends(line, start, match):
            return True
        following = _NEXT.match(line, match.end(), match.end() + _REACH)
        word = "" if following is None else following["word"] or ""
        has_stop = following is not None and following["stop"] == "."
        if not word and following is not None and following.end() == len(line):
            return False  # a closing mark behind a space
        if _CONTINUATION.match(line, match.end()) or _YEAR.match(line, match.end()):
            return False
        if _begins_small(word) and not self._may_begin_small(line, start, match):
            return False
        if _INVERTED_MARK.match(line, match.end()):
            return True
        if match["mark"][0] == "…" or match["mark"].startswith(".."):
            return self._ends_after_ellipsis(line, start, match, word)
        if match["mark"] != "." or match["closers"]:
            return True
        before = line[max(start, match.start() - _REACH) : match.start()]
        is_beginning = len(before) < _REACH
        if is_beginning and _LIST_MARKER.fullmatch(before):
            return False
        if has_stop and len(word) == 1 and word.isupper() and _INITIAL_BEFORE.search(before):
            return False
        written = _word_before(before)
        forms = _forms(before, written)
        if self._is_inside(forms, word, has_stop):
            return False
        if not forms.isdisjoint(self._midday):
            return not self._goes_on_behind_midday(before if is_beginning else "", word, has_stop)
        if self._measure.search(before):
            return not word[:1].isdigit()  # 5 ft. 3 in.
        if self._is_undecided(before, written, forms):
            # A list of items that begin alike: "Vitamin C. Vitamin D."
            return self._is_starter(word) or (is_beginning and before.split()[:1] == [word])
        return True

    def _surely_ends(self, line: str, start: int, match: "regex.Match[str]") -> bool:
        """Return whether this is a usual end of a sentence, which no rule is about; an eighth of the time of all."""
        if not _USUAL_BEGINNING.match(line, match.end()):
            return False
        mark = match["mark"]
        if mark in ("!", "?"):
            return True
        end = match.start()
        if mark != "." or match["closers"]:
            return False
        last = _USUAL_END.search(line[max(start, end - _USUAL_REACH) : end])
        return (
            last is not None
            and last[1] not in self._abbreviations
            and not last[1].endswith(self._numbered_endings)
            and _VOWEL.search(last[1]) is not None
        )

    def _may_begin_small(self, line: str, start: int, match: "regex.Match[str]") -> bool:
        """Return whether a sentence may begin with a small letter: in a text without capitals, and with some words."""
        first = _BEFORE_CAPITAL.match(line, match.end())
        if first is not None and first["word"].replace("’", "'") in self._small_beginnings:
            return True
        return not match["closers"] and _SMALL_BEGINNING.match(line, start, start + _REACH) is not None

    def _ends_after_ellipsis(self, line: str, start: int, match: "regex.Match[str]", word: str) -> bool:
        """Return whether an ellipsis ends a sentence: not before the first person, nor often behind its first words."""
        if match["closers"]:
            return True
        is_first_person = word.replace("’", "'").partition("'")[0] in self._first_person
        before = line[start : match.start()][: _REACH + 1]
        if len(before) > _REACH or not _FEW_WORDS.fullmatch(before):
            return not (self._first_person_has_capital and is_first_person)
        if is_first_person:
            return False
        return self._is_starter(word) or not (self._has_inner_capitals or _ONE_WORD.fullmatch(before))

    def _goes_on_behind_midday(self, sentence: str, word: str, has_stop: bool) -> bool:
        """Return whether a sentence goes on behind a time: "At 10 a.m. Tom arrived."."""
        phrase = _SHORT_PHRASE.fullmatch(sentence)
        is_adverbial = phrase is not None and phrase["word"] in self._prepositions_of_time
        is_title = has_stop and len(word) <= _LONGEST_TITLE
        return is_title or is_adverbial or word in self._behind_midday or _TIME_ZONE.fullmatch(word) is not None

    def _is_inside(self, forms: set[str], word: str, has_stop: bool) -> bool:
        """Return whether the full stop belongs to an abbreviation that never ends a sentence before `word`."""
        if has_stop and any(f"{form}.{word.lower()}" in self._parts for form in forms):
            return True
        if not forms.isdisjoint(self._inside):
            return True
        is_number = word[:1].isdigit() or (word.isupper() and _ROMAN.fullmatch(word) is not None)
        return is_number and any(map(self._is_numbered, forms))

    def _is_undecided(self, before: str, written: str, forms: set[str]) -> bool:
        """Return whether the full stop may belong to the word before it or to the sentence, or to both."""
        if not forms.isdisjoint(self._last) or self._is_counted(before):
            return False
        if not forms.isdisjoint(self._either) or _ACRONYM.fullmatch(written):
            return True
        if self._has_ordinals and (_ORDINAL.fullmatch(written) or (len(written) > 1 and _ROMAN.fullmatch(written))):
            return not _SCORE.search(before)
        if _INITIAL.fullmatch(written):
            return written not in self._first_person
        # Words without vowels are abbreviations, except acronyms, units and sounds.
        is_word = written.isalpha() and not written.isupper() and not _VOWEL.search(written)
        return is_word and written.lower() not in self._sounds and not _UNIT.fullmatch(written)

    def _is_counted(self, before: str) -> bool:
        """Return whether a number stands behind an abbreviation that counts: `S. 4`, `Hauptstr. 5`."""
        counted = _NUMBERED_BEFORE.search(before)
        word = "" if counted is None else counted["word"].lower()
        return self._is_numbered(word)

    def _is_numbered(self, word: str) -> bool:
        """Return whether a word is an abbreviation before numbers."""
        return word in self._numbered or word.endswith(self._numbered_endings)

    def _is_starter(self, word: str) -> bool:
        """Return whether a word, or its part before an apostrophe, usually begins sentences."""
        whole = word.lower().replace("’", "'")
        return whole in self._starters or whole.partition("'")[0] in self._starters


def _word_before(text: str) -> str:
    """Return the last word of a text, with the full stops and hyphens inside it."""
    found = _WORD_BEFORE.search(text)
    return found[0].strip(".'’-") if found else ""


def _forms(before: str, written: str) -> set[str]:
    """Return the last word as the tables may have it: as written, in lower case, without an article, with its chain."""
    lowered = written.lower()
    forms = {written, lowered}
    if "'" in lowered or "’" in lowered:
        forms.add(lowered.replace("’", "'").rpartition("'")[2])
    if chain := _CHAIN_BEFORE.search(before):
        forms.add("".join(chain[0].lower().split()))
    return forms


def _begins_small(word: str) -> bool:
    """Return whether a word has a small letter first, unless it is a name such as iPhone."""
    return word[:1].islower() and not word[1:2].isupper()


@lru_cache(maxsize=256)  # requests name languages
def rules_of(language: str) -> BoundaryRules | None:
    """Return the rules for a language such as `en` or `pt-BR`; None if there are no abbreviations for it."""
    table = table_of(language)
    return None if table.abbreviations is None else BoundaryRules(table, table.abbreviations)
