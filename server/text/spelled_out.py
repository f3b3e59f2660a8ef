"""Abbreviations behind which models end the sentence, in full as models read them."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from server.text.protection.word_alignment import Range

_NONE: Mapping[str, str] = MappingProxyType({})

# docs/decisions/text.md has the measurements, and abbreviations that models read best as they are.
_IN_FULL: Mapping[str, Mapping[str, str]] = {
    "de": {
        "bzw.": "oder",
        "evtl.": "eventuell",
        "ggf.": "gegebenenfalls",
        "inkl.": "einschließlich",
        "insb.": "insbesondere",
        "sog.": "sogenannte",
        "u. a.": "unter anderem",
        "u.a.": "unter anderem",
    },
    "en": {
        "a.k.a.": "also known as",
        "incl.": "including",
        "Mt.": "Mount",
        "E.U.": "EU",
        "U.K.": "UK",
        "U.N.": "UN",
        "U.S.": "US",
    },
}
_IN_FULL_BEFORE_NUMBERS: Mapping[str, Mapping[str, str]] = {
    "de": {"ca.": "ungefähr", "max.": "maximal", "min.": "mindestens", "mind.": "mindestens"},
    "en": {"approx.": "about"},
}

_BEGIN = r"(?<![\w.])(?<!\d )"  # `5 min. 30 s` has minutes
_GOES_ON = r"(?=[,;:)]|\s+(?!m\.)[^\W_])"  # the sentence, behind the abbreviation; `u. a. m.` is another one
_BEFORE_NUMBER = r"(?=\s+\d)"


class SpelledOut:
    """The abbreviations of one language. Thread-safe."""

    def __init__(self, in_full: Mapping[str, str], in_full_before_numbers: Mapping[str, str]) -> None:
        self._in_full = {**in_full, **in_full_before_numbers}
        alternatives = f"{_any_of(in_full)}{_GOES_ON}|{_any_of(in_full_before_numbers)}{_BEFORE_NUMBER}"
        self._pattern = re.compile(rf"{_BEGIN}(?:{alternatives})") if self._in_full else None

    def in_full(self, text: str) -> str:
        """Return a text as the model reads it; fast if no full stop is inside."""
        if self._pattern is None or text.find(".", 0, -1) < 0:
            return text
        return self._pattern.sub(lambda match: self._of(match.group()), text)

    def ranges_in(self, text: str, ranges: Sequence[Range]) -> Sequence[Range]:
        """Return the ranges of a text as the model reads it as those of the text itself."""
        if self._pattern is None or (matches := list(self._pattern.finditer(text))) == []:
            return ranges
        starts: list[int] = []  # of each character that is read
        ends: list[int] = []
        position = 0
        for start, end in (*(match.span() for match in matches), (len(text), len(text))):
            starts += range(position, start)
            ends += range(position + 1, start + 1)
            length = len(self._of(text[start:end])) if start < end else 0
            starts += [start] * length
            ends += [end - 1] * length  # the full stop is a word of its own
            position = end
        starts.append(len(text))
        return [(starts[first], ends[last - 1] if last > first else starts[first]) for first, last in ranges]

    def _of(self, written: str) -> str:
        if written in self._in_full:
            return self._in_full[written]
        return self._in_full[written[0].lower() + written[1:]].capitalize()


def _any_of(abbreviations: Mapping[str, str]) -> str:
    """Return a pattern of abbreviations, also with a capital as at the beginning of a sentence."""
    patterns = [f"[{each[0]}{each[0].upper()}]{re.escape(each[1:])}" for each in abbreviations]
    return f"(?:{'|'.join(patterns)})" if patterns else "(?!)"


@cache
def spelled_out(language: str) -> SpelledOut:
    """Return the abbreviations of a language such as `de` or `de-CH`."""
    code = language.partition("-")[0].lower()
    return SpelledOut(_IN_FULL.get(code, _NONE), _IN_FULL_BEFORE_NUMBERS.get(code, _NONE))
