"""Signs that a translation lacks a part of its source: parts that are missing, its length, its probability."""

import re
from collections.abc import Iterator

from server.text.segmentation.sentences import sentences

# docs/quality.md has the rates at which these limits detect omissions, and their false alarms.
_MIN_RATIO = 0.85  # characters of a translation to those of a source with several parts
_MIN_RATIO_OF_ONE = 0.3  # of any other source
_MIN_CHARACTERS = 40  # of a source whose length is compared
_MIN_LOG_PROBABILITY = -1.1  # mean of the tokens of the translation of several parts
_MIN_WORDS = 2  # in brackets or quotation marks, for a part of its own

_INNER_MARK = re.compile(r"[.!?…;。！？；\n\r()\[\]\"“”„«»](?=[\s\S]*\w)")
_GROUP = re.compile(r"\(([^()]+)\)|\[([^\[\]]+)\]|[\"“„«»]([^\"“”„«»]+)[\"”“«»]")
_SEMICOLON = re.compile(r"[;；]")
_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W\d_]")
_TRAILING = re.compile(r"[^\w.!?…。！？%°]+$")

SENTENCE_ENDS = ".!?…。！？"

Span = tuple[int, int]


def may_have_parts(text: str) -> bool:
    """Return whether a text has a mark between parts. It is fast, and True for some texts with one part."""
    return _INNER_MARK.search(text) is not None


def parts(text: str, language: str) -> list[Span]:
    """Return the parts of a text that say something of their own, in their order.

    They are sentences, what stands between semicolons, and what is in brackets or quotation marks.
    """
    found: list[Span] = []
    for start, end in _regions(text):
        position = start
        for mark in (*_SEMICOLON.finditer(text, start, end), None):
            stop = end if mark is None else mark.start()
            found += _sentences(text, position, stop, language)
            position = end if mark is None else mark.end()
    return found


def is_doubtful(source: str, translation: str, languages: tuple[str, str], log_probability: float) -> bool:
    """Return whether a translation may lack something of its source, and should be compared with another attempt.

    `languages` are those of both; `log_probability` is the mean of the tokens, NaN if it is unknown.
    """
    if lacks_parts(source, translation, languages):
        return True
    if not may_have_parts(source) or len(parts(source, languages[0])) < _MIN_WORDS:
        return False
    return is_short(source, translation) or log_probability < _MIN_LOG_PROBABILITY


def is_short(source: str, translation: str) -> bool:
    """Return whether a translation of several parts is shorter than most."""
    return len(translation) < _MIN_RATIO * len(source)


def lacks_parts(source: str, translation: str, languages: tuple[str, str]) -> bool:
    """Return whether a translation has fewer parts than its source, or is far too short."""
    if len(source) >= _MIN_CHARACTERS and len(translation) < _MIN_RATIO_OF_ONE * len(source):
        return True
    return may_have_parts(source) and len(parts(translation, languages[1])) < len(parts(source, languages[0]))


def _regions(text: str) -> Iterator[Span]:
    """Yield the spans between and in brackets and quotation marks with several words."""
    position = 0
    for match in _GROUP.finditer(text):
        inner = match.span(match.lastindex or 0)
        if len(_WORD.findall(text, *inner)) < _MIN_WORDS:
            continue
        yield position, match.start()
        yield inner
        position = match.end()
    yield position, len(text)


def _sentences(text: str, start: int, end: int, language: str) -> Iterator[Span]:
    """Yield the sentences of a span that have letters, without the marks around them but the end of the sentence."""
    position = start
    for segment in sentences(text[start:end], language):
        first = position + len(segment.before)
        last = first + len(segment.text)
        position = last + len(segment.after)
        if _LETTER.search(text, first, last) is None:
            continue
        word = _WORD.search(text, first, last)
        assert word is not None, "a letter is part of a word"
        trailing = _TRAILING.search(text[word.start() : last])
        yield word.start(), last if trailing is None else word.start() + trailing.start()
