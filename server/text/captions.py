"""Sentences that run over several captions: which captions belong together, and where their translation is divided.

A sentence is translated as one text with a `DIVIDER` between its captions. Alignment puts the dividers into the
translation; from there each cut moves to the best place near by.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import regex

from server.text.language_tables import table_of
from server.text.readers.units import DIVIDER
from server.text.segmentation.sentences import sentences

# In front of the words of a speaker, and not part of them: a dash, or the marks of live captions.
LEAD = regex.compile(r"(?:[\p{Pd}−•]++(?!\d)|(?:>|＞|&gt;){2,})\s*+")
# A word of a name has a capital letter, or a letter of a script without them.
_NAME_WORD = r"[\p{Lu}\p{Lt}\p{Lo}\p{N}#][\w.'’#-]*+"
_NAME = rf"{_NAME_WORD}(?:\s{_NAME_WORD}){{0,3}}+(?:\s?[(\[（][^()\[\]（）]{{1,40}}[)\]）])?+\s?(?::(?=\s|\Z)|：)"
_NOTE = r"(?:[♩-♬🎵🎶]|(?<!\S)#(?!\S))"
_SPEAKER = regex.compile(rf"{LEAD.pattern}|[(\[（［【〔*]|{_NOTE}|{_NAME}")
# A line on its own: in brackets, between two signs (¶ the sea ¶), with a note, or a name.
_APART = regex.compile(rf"[(\[（［【〔][^()\[\]]*+[)\]）］】〕]|([*~¶\p{{So}}])[^\n]*\1|.*{_NOTE}|{_NAME}")
_LISTED = regex.compile(r"\d{1,3}[.)]\s")  # in front of a line of a list
_SENTENCE_END = regex.compile(r"([\p{Sentence_Terminal}…‥])[\p{Pe}\p{Pf}\"'’]*+\Z")
# One speaker's words in quotation marks, or interrupted, and then those of the next.
_OTHER_SPEAKS = regex.compile(r".*(?:[\p{Pf}»\"]\n[\p{Pi}«„\"]|(?:--|[–—])\n\W*+\p{Lu})")
_MAYBE_END = ".…‥"  # also behind abbreviations and hesitation
_LATIN = regex.compile(r"\p{Latin}")
_LANGUAGE, _JUDGED = "en", 80  # of the rules; characters on both sides of a line end

_MAX_JOINED = 300  # characters: few sentences of speech are longer, and texts without full stops have no end
# The least share of captions that end with a sentence, in texts whose authors mark ends. Others, as most in Chinese and
# Thai, show with a small letter alone that a sentence goes on.
_MARKED_SHARE = 0.1

# Letters of scripts without blanks between words.
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}--\p{M}]"
_ENDS_UNSPACED, _BEGINS_UNSPACED = (regex.compile(each, regex.V1) for each in (rf"{_UNSPACED}\Z", _UNSPACED))
_START = regex.compile(rf"(?:(?<=\s)|\A)\S|(?<=[\w\p{{M}}\p{{Po}}\p{{Pe}}\p{{Pf}}]){_UNSPACED}", regex.V1)
_LETTER = regex.compile(r"(?<=[\p{L}\p{N}]\p{M}*)[\p{L}\p{N}]")  # with another one in front of it
_HYPHENATED = r"[\p{Latin}\p{Cyrillic}\p{Greek}]"
_IN_WORD = regex.compile(rf"(?<={_HYPHENATED}\p{{M}}*){_HYPHENATED}")
_LAST_WORD = regex.compile(r"[\w.\-'’]*\w(?=\W*\Z)")
_LAST_MARK = regex.compile(r"(?:([\p{Sentence_Terminal}…‥])|[,;:،、，；：)\]»”–—-])[\"'’”»)\]]*\Z")

# Costs of a cut, in words that it is moved from where alignment puts it, and of characters that are too many there.
_REACH = 2  # words
_SEEN = 40  # characters before a cut
_SENTENCE_BONUS, _PUNCTUATION_BONUS = 2.5, 1.5
_BOUND_COST = 3.0
_PER_LONG_CHARACTER, _PER_FAST_CHARACTER = 0.5, 0.25


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """Characters that a viewer reads: in a line, in the lines of a caption, and in a second."""

    line_characters: int = 42
    num_lines: int = 2
    characters_per_second: float = math.inf


@dataclass(frozen=True, slots=True)
class Caption:
    """The number of characters of a caption's source, and the seconds that it is shown; None if they are unknown."""

    num_characters: int
    seconds: float | None = None


def is_end(text: str, following: str) -> bool:
    """Return whether a line ends a sentence, or the next is that of another speaker."""
    end = _SENTENCE_END.search(text)
    return (
        _SPEAKER.match(following) is not None
        or _APART.fullmatch(text) is not None
        or (_LISTED.match(text) is not None and _LISTED.match(following) is not None)
        or _OTHER_SPEAKS.match(f"{text}\n{following}") is not None
        or (end is not None and (end[1] not in _MAYBE_END or _is_certain_end(text, following)))
    )


def _is_certain_end(text: str, following: str) -> bool:
    """Return whether a full stop or an ellipsis ends a sentence: not before a small letter or behind an abbreviation.

    Abbreviations are those of the rules for texts of unknown languages, which know the Latin script.
    """
    if next(filter(str.isalpha, following), "").islower():
        return False
    text, following = text[-_JUDGED:], following[:_JUDGED]
    if _LATIN.search(text) is None:
        return True
    lengths = (len(each.before + each.text + each.after) for each in sentences(f"{text} {following}", _LANGUAGE))
    return not {len(text), len(text) + 1}.isdisjoint(accumulate(lengths))


def joined_captions(texts: Sequence[str], may_join: Sequence[bool]) -> list[range]:
    """Return the ranges of captions that are one text. `may_join` tells for each caption but the first whether it may
    continue the one before: it follows soon, in the same place, from the same speaker.
    """
    num_ends = sum(_SENTENCE_END.search(text) is not None for text in texts)
    has_ends = num_ends >= _MARKED_SHARE * len(texts)
    groups: list[range] = []
    length = 0
    for index, text in enumerate(texts):
        goes_on = (
            index > 0
            and may_join[index - 1]
            and length + len(text) < _MAX_JOINED
            and (has_ends or next(filter(str.isalpha, text), "").islower())
            and not is_end(texts[index - 1], text)
        )
        if goes_on:
            groups[-1] = range(groups[-1].start, index + 1)
            length += 1 + len(text)
        else:
            groups.append(range(index, index + 1))
            length = len(text)
    return groups


def with_dividers(captions: Sequence[str]) -> str:
    """Return captions as one text, with a `DIVIDER` in front of each but the first."""
    return captions[0] + "".join(f"{divider(text, other)}{other}" for text, other in pairwise(captions))


def divider(text: str, following: str) -> str:
    """Return what stands between two captions of a sentence: a `DIVIDER` behind a blank, if their script has blanks."""
    return DIVIDER if _ENDS_UNSPACED.search(text) and _BEGINS_UNSPACED.match(following) else f" {DIVIDER}"


def cuts(text: str, captions: Sequence[Caption], language: str, limits: ReadingLimits) -> list[int]:
    """Return where each caption but the first begins in a translation without its dividers.

    Cuts are where the dividers of `text` are, or by the lengths of the captions if some are lost; then each moves by up
    to two words: behind punctuation, away from an article and its noun, and to captions that can be read in their time.
    Each caption has a word, or a part of one where there are fewer words than captions. Of a text with too few letters
    even for that, the last captions begin at its end.
    """
    *parts, last = text.split(DIVIDER)
    plain = "".join((*parts, last))
    number = len(captions) - 1
    if not number:
        return []
    places = list(accumulate(map(len, parts)))
    if len(places) != number:
        total = sum(each.num_characters for each in captions) or 1
        ends = accumulate(each.num_characters for each in captions[:-1])
        places = [end * len(plain) // total for end in ends]
    starts = _starts(plain)
    if len(starts) < number:
        return _cuts_in_words(plain, starts, number)
    wanted: list[int] = []
    for index, place in enumerate(places):
        lowest, highest = wanted[-1] + 1 if wanted else 0, len(starts) - (number - index)
        wanted.append(min(max(_nearest(starts, place), lowest), highest))
    return _best_cuts(plain, starts, wanted, captions, _Costs(plain, language, limits))


def divided(text: str, captions: Sequence[Caption], language: str, limits: ReadingLimits) -> list[str]:
    """Return the captions of a translation, as `cuts` divides it; one without a letter repeats the one before it."""
    plain = text.replace(DIVIDER, "")
    places = [0, *cuts(text, captions, language, limits), len(plain)]
    return filled([plain[start:end].strip() + hyphen(plain, end) for start, end in pairwise(places)])


def hyphen(text: str, place: int) -> str:
    """Return the hyphen that a cut puts behind the part of a word; none between words, and in scripts without it."""
    return "-" if _IN_WORD.match(text, place) else ""


def filled(captions: Sequence[str]) -> list[str]:
    """Return captions with each empty one replaced by the one before it, or the first: words stay on the screen."""
    last = next(filter(None, captions), "")
    return [last := each or last for each in captions]


def _starts(text: str) -> list[int]:
    """Return where a caption may begin: at words, but the first. A dash between words belongs to the one before."""
    num_letters = [0, *accumulate(map(str.isalnum, text))]
    places = [match.start() for match in _START.finditer(text)]
    return [
        place for place, following in pairwise((*places, len(text))) if 0 < num_letters[place] < num_letters[following]
    ]


def _cuts_in_words(text: str, starts: Sequence[int], number: int) -> list[int]:
    """Return so many cuts: at all words, and in the middle of the longest ones, between letters of theirs."""
    cuts = [*starts]
    inside = [match.start() for match in _LETTER.finditer(text)]
    while len(cuts) < number:
        pieces = sorted(pairwise((0, *cuts, len(text))), key=lambda piece: piece[0] - piece[1])
        found = ((begin, end, [place for place in inside if begin < place < end]) for begin, end in pieces)
        begin, end, places = next((each for each in found if each[2]), (len(text), len(text), [len(text)]))
        cuts.append(min(places, key=lambda place: abs(place - (begin + end) / 2)))
        cuts.sort()
    return cuts


def _nearest(starts: Sequence[int], place: int) -> int:
    index = bisect_left(starts, place)
    if index == len(starts) or (index and place - starts[index - 1] < starts[index] - place):
        index -= 1
    return index


class _Costs:
    """Costs of captions and of cuts between them, in words that a cut is moved."""

    def __init__(self, text: str, language: str, limits: ReadingLimits) -> None:
        self._text = text
        self._limits = limits
        table = table_of(language)
        self._articles = frozenset(table.articles)
        inside = table.abbreviations
        self._abbreviations = frozenset((*inside.inside, *inside.numbered)) if inside is not None else frozenset()

    def of_cut(self, place: int) -> float:
        """Return the cost of a cut, negative behind punctuation, with the words on both sides belonging together."""
        before = self._text[max(place - _SEEN, 0) : place].rstrip()
        match = _LAST_WORD.search(before)
        word = match.group().lower() if match is not None else ""
        mark = _LAST_MARK.search(before)
        if mark is not None:
            is_abbreviation = mark.group() == "." and word in self._abbreviations
            bonus = _SENTENCE_BONUS if mark[1] else _PUNCTUATION_BONUS
            return _BOUND_COST if is_abbreviation else -bonus
        is_number = word[-1:].isdigit() and self._text[place : place + 1].isalpha()
        return _BOUND_COST if is_number or word in self._articles else 0.0

    def of_caption(self, start: int, end: int, caption: Caption) -> float:
        """Return the cost of the characters of a caption that are too many for it."""
        length = len(self._text[start:end].strip())
        cost = _PER_LONG_CHARACTER * max(length - self._limits.line_characters * self._limits.num_lines, 0)
        if caption.seconds is not None:
            cost += _PER_FAST_CHARACTER * max(length - self._limits.characters_per_second * caption.seconds, 0)
        return cost


def _best_cuts(
    text: str, starts: Sequence[int], wanted: Sequence[int], captions: Sequence[Caption], costs: _Costs
) -> list[int]:
    """Return the cheapest cuts, each at most `_REACH` starts from the one wanted, which are in increasing order."""
    best: list[tuple[float, list[int]]] = [(0.0, [])]  # the cheapest cuts so far, for each place of the last one
    for caption, index in zip(captions, wanted, strict=False):
        found: list[tuple[float, list[int]]] = []
        for cut in range(max(index - _REACH, 0), min(index + _REACH + 1, len(starts))):
            place = starts[cut]
            so_far = [
                (cost + costs.of_caption(its_cuts[-1] if its_cuts else 0, place, caption), its_cuts)
                for cost, its_cuts in best
                if not its_cuts or its_cuts[-1] < place
            ]
            if so_far:
                cost, its_cuts = min(so_far)
                found.append((cost + abs(cut - index) + costs.of_cut(place), [*its_cuts, place]))
        best = found
    return min((cost + costs.of_caption(cuts[-1], len(text), captions[-1]), cuts) for cost, cuts in best)[1]
