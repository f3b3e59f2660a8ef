"""Segmentation of a text into sentences that a model takes, without loss of a character."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, pairwise

import regex
import sentencex

from server.interface.interruption import checkpoint
from server.text.language_tables import Words, table_of
from server.text.segmentation.boundaries import rules_of

# Characters passed to `sentencex` at once: some of its rules take time quadratic in the length of a line.
_WINDOW = 4000
# Characters of the rest of a divided sentence that are counted for its next piece, and their multiple of the piece
# before. If the whole rest were counted for every piece, 100,000 characters without a space would take 5 s.
_MIN_REACH = 4096
_REACH_PIECES = 8
# Where `sentencex` divides sentences in languages whose abbreviations it lacks: behind a full stop without a blank,
# before a small letter or a year in brackets, behind one letter or a number alone, and in scripts whose sentences have
# no full stop.
_FULL_STOP = regex.compile(r"\.(?P<blank>\s*)$")
_INSIDE = regex.compile(r"[^\p{L}\p{N}]*+\p{Ll}|[(\[]\d{4}[a-z]?[)\]]")
_INITIAL = regex.compile(
    r"(?:(?<![\p{L}\p{M}\p{N}])\p{L}\p{M}*|^\W*(?:[IVXLCDM]+|\d{1,3})|[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*)\.\s*$"
)
# A full stop inside a date, with the beginning of the next sentence behind the divider: `13. 5. 2021`, `2021. 5. 13.`,
# `13. Mee 2021`, `13 трав. 2021`, `2021. máj. 13.`
_DATE_REACH = 24
_DATE = regex.compile(
    r"(?<!\d)(?:\d{1,2}\.\s*\0(?:\d{1,2}\.|\p{Lu}\p{L}++\.?\s\d{4})|\d{1,2}\.\s?\d{1,2}\.\s*\0\d{2,4}|\d{4}\.\s*\0\d{1,2}\."
    r"|\d{1,2}\.?\s\p{L}{2,5}\.\s*\0\d{4}|\d{4}\S{0,6}\s\p{Ll}{2,5}\.\s*\0\d{1,2})(?!\d)"
)
# A line with marks of the end of a sentence only at its end, in languages with rules.
_ONE_SENTENCE = re.compile(r"[^.!?…‼⁇⁈⁉‽。！？｡\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*+[.!?…]*+")


@dataclass(slots=True)  # not frozen: that takes twice as long to create, once a sentence
class Segment:
    """A sentence or a part of one, and the whitespace around it; `text` has none at its ends.

    `text` is empty only in the first segment, for whitespace that has no sentence before it.
    """

    before: str
    text: str
    after: str
    continues: bool = False  # a sentence longer than the model takes goes on in the next segment


def sentences(text: str, language: str) -> list[Segment]:
    """Return segments that together are `text`, one for each sentence, however long.

    Sentences end at every line break, and where the rules for `language` find an end; `sentencex` finds it in languages
    without rules.
    """
    rules = rules_of(language)
    words = text.strip()
    if rules is not None and words and text.startswith(words[0]) and _ONE_SENTENCE.fullmatch(words):
        return [Segment("", words, text[len(words) :])]
    found: list[Segment] = []
    for line in text.splitlines(keepends=True):
        for sentence in _library_sentences(line, language) if rules is None else rules.sentences(line):
            checkpoint()
            found.append(whole(sentence))
    return _attach_blanks(found)


def split(text: str, language: str, fits: Callable[[str], bool]) -> list[Segment]:
    """Return segments that together are `text`. Each of them fits if a division between graphemes makes it fit.

    A sentence that does not fit is divided at a clause, else at a space, else between graphemes.
    """
    return [piece for sentence in sentences(text, language) for piece in divided(sentence, fits, language)]


def divided(sentence: Segment, fits: Callable[[str], bool], language: str) -> list[Segment]:
    """Return the pieces of a sentence that fit: the sentence itself if it does."""
    pieces: list[Segment] = []
    reach = len(sentence.text)  # what begins with this many characters that do not fit is not counted

    def fits_in_reach(text: str) -> bool:
        return len(text) < reach and fits(text)

    while sentence.text:
        if fits(sentence.text[:reach]):
            if reach >= len(sentence.text):
                break
            reach *= 2
            continue
        end = longest_piece(sentence.text, fits_in_reach, language)
        reach = max(_MIN_REACH, _REACH_PIECES * end)
        piece, rest = sentence.text[:end].rstrip(), sentence.text[end:]
        pieces.append(Segment(sentence.before, piece, sentence.text[len(piece) : end], continues=True))
        words = rest.lstrip()
        sentence = Segment(rest[: len(rest) - len(words)], words, sentence.after)
    return _attach_blanks([*pieces, sentence])


def whole(text: str) -> Segment:
    """Return the text as one segment with all its sentences."""
    words = text.strip()
    before = text[: len(text) - len(text.lstrip())] if words else text
    return Segment(before, words, text[len(before) + len(words) :])


def _library_sentences(line: str, language: str) -> Iterator[str]:
    """Yield the sentences of one line in a language without rules of its own."""
    start = 0
    while start < len(line):
        window = line[start : start + _WINDOW]
        sentences = _segment(language, window)
        if start + len(window) < len(line):
            # The last sentence may end behind the window; a single one is divided at a clause.
            sentences = sentences[:-1] or [
                window[: longest_piece(line[start : start + _WINDOW + 1], _in_window, language)]
            ]
        yield from sentences
        start += sum(map(len, sentences))


def _segment(language: str, line: str) -> list[str]:
    """Return the sentences that `sentencex` finds in a line, or the whole line if it fails or loses a character."""
    try:
        sentences = sentencex.segment(language, line)
    except Exception:  # noqa: BLE001 - its errors are not documented; a line that it cannot split is one sentence
        return [line]
    except BaseException as error:
        # A panic of the Rust code is neither an Exception nor importable by name.
        if type(error).__name__ == "PanicException":
            return [line]
        raise
    if "".join(sentences) != line or not all(sentences):
        return [line]
    joined: list[str] = sentences[:1]
    for before, sentence in pairwise(sentences):
        stop = _FULL_STOP.search(before)
        if not any(map(str.isalnum, before)) or (
            stop
            and (
                not stop["blank"]
                or _INSIDE.match(sentence)
                or _INITIAL.search(before)
                or _DATE.search(f"{joined[-1][-_DATE_REACH:]}\0{sentence[:_DATE_REACH]}")
            )
        ):
            joined[-1] += sentence
        else:
            joined.append(sentence)
    return joined


def _in_window(text: str) -> bool:
    return len(text) <= _WINDOW


def _attach_blanks(segments: list[Segment]) -> list[Segment]:
    """Return the segments with each run of blank ones merged into the whitespace of the segment before it."""
    if all(segment.text for segment in segments):
        return segments
    merged: list[Segment] = []
    for blank, run in groupby(segments, key=lambda segment: not segment.text):
        if not blank:
            merged.extend(run)
            continue
        whitespace = "".join(segment.before for segment in run)
        if merged:
            merged[-1] = replace(merged[-1], after=merged[-1].after + whitespace)
        else:
            merged.append(Segment(whitespace, "", ""))
    return merged


# Marks that end a clause: those of alphabets before a space ("3,000" and "12:30" stay whole), the others anywhere.
_CLAUSE_END = regex.compile(r"[;:,.!?…)\]»”’\"'](?=\s)|[—、，；：。！？؛،]")
_SPACE = regex.compile(r"\s+")
# \X alone goes back from each letter of a flag to the first of a row of flags.
_GRAPHEME = regex.compile(r"\p{Regional_Indicator}{1,2}+[\p{M}\u200d]*+|\X")

# Clauses shorter than this share of the limit are not split off: the rest would be divided more often.
_SHORTEST_CLAUSE = 0.25


def longest_piece(text: str, fits: Callable[[str], bool], language: str) -> int:
    """Return how many characters of `text` fit and end as naturally as possible; at least 1.

    Tried in turn: the last clause end, conjunction of `language`, space and grapheme border within the longest prefix
    that fits.
    """
    limit = _longest_prefix(text, fits)
    shortest_clause = max(1, int(limit * _SHORTEST_CLAUSE))
    before_conjunction = _before_any(table_of(language).conjunctions)
    for pattern, shortest in (
        (_CLAUSE_END, shortest_clause),
        (before_conjunction, shortest_clause),
        (_SPACE, 1),
        (_GRAPHEME, 1),
    ):
        ends = (match.end() for match in pattern.finditer(text[: limit + 1]))
        for end in reversed([end for end in ends if shortest <= end <= limit]):
            # Token counts are not strictly monotone in the length, so the very piece is counted.
            if fits(text[:end].rstrip()):
                return end
    return limit


def _longest_prefix(text: str, fits: Callable[[str], bool]) -> int:
    """Return the length of the longest prefix that bisection finds to fit, or 1."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(text[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


@cache
def _before_any(words: Words) -> "regex.Pattern[str]":
    """Return a pattern of the space before any of these words."""
    return regex.compile(rf"\s(?=(?:{'|'.join(map(regex.escape, words)) or '(?!)'})\s)", regex.IGNORECASE)
