"""Comparison of sentences as tools for translators do it: word by word, with numbers and placeholders as wild cards."""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import regex
from rapidfuzz.distance import Levenshtein

from server.text.number_forms import forms, plural_category
from server.text.readers.units import OBJECT
from server.text.spans import SpanKind, find_spans

EXACT = 100
_MAX_FUZZY = 99
_NUMBER = re.compile(r"\d+(?:[.,'’٬٫·\u00a0\u202f\u2009]\d+)*")
# Scripts that are written without blanks are compared letter by letter.
_WORD = regex.compile(
    rf"{OBJECT}|[\p{{Han}}\p{{Hiragana}}\p{{Katakana}}\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}]\p{{M}}*"
    r"|[^\W_]\p{M}*(?:[^\W_\p{Han}\p{Hiragana}\p{Katakana}]|\p{M}|['’](?=\w))*"
)
_ASCII_WORD = re.compile(rf"{OBJECT}|[^\W_]+(?:'[^\W_]+)*", re.ASCII)
_APOSTROPHE = "\N{MODIFIER LETTER APOSTROPHE}"  # a letter for the tokenizer of the index
_APOSTROPHES = str.maketrans({"'": _APOSTROPHE, "’": _APOSTROPHE})

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Folded:
    """A sentence as it is compared.

    `text` is normalized and has `OBJECT` in place of each number and each machine-readable span, the `variables`.
    `words` are the words of it, without case.
    """

    text: str
    variables: tuple[str, ...]

    @property
    def words(self) -> str:
        """The words, joined by blanks."""
        pattern = _ASCII_WORD if self.text.replace(OBJECT, "").isascii() else _WORD
        return " ".join(pattern.findall(self.text.casefold())).translate(_APOSTROPHES)


def fold(text: str) -> Folded:
    """Return a sentence as it is compared."""
    text = normalized(text)
    parts: list[str] = []
    position = 0
    if not (ranges := _variables(text)):
        return Folded(text, ())
    for start, end in ranges:
        parts += text[position:start], OBJECT
        position = end
    return Folded("".join((*parts, text[position:])), tuple(text[start:end] for start, end in ranges))


def normalized(text: str) -> str:
    """Return a text in Unicode's composed form, with single blanks."""
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def number_of(text: str) -> int:
    """Return a number of 64 bits, with sign, that is as good as different for every text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def max_edits(num_words: int, threshold: int) -> int:
    """Return the largest word edit distance between a sentence of so many words and one that reaches the threshold.

    The score counts edits over the longer of both, which has `num_words * 100 / threshold` words at most.
    """
    return (100 - threshold) * num_words // threshold


def score(words: Sequence[str], others: Sequence[str], threshold: int) -> int:
    """Return 100 minus the word edit distance in percent of the longer sentence; 0 below the threshold.

    Equal words score 99: their case or punctuation may differ.
    """
    longer = max(len(words), len(others), 1)
    limit = (100 - threshold) * longer // 100
    distance = Levenshtein.distance(words, others, score_cutoff=limit)
    return 0 if distance > limit else min(100 - -(-100 * distance // longer), _MAX_FUZZY)


def exchanged(new: Folded, stored: Folded, translation: str, source_language: str, target_language: str) -> str | None:
    """Return a stored translation with the variables of another sentence that is equal without them.

    None where it is ambiguous what to replace: a variable that changed must be in the translation as often as in the
    stored sentence, in a form that stands for no other one, and not in front of a word that counts otherwise then.
    """
    if len(stored.variables) != len(new.variables):  # one of them has `OBJECT` itself
        return None
    changes = dict(zip(stored.variables, new.variables, strict=True))
    if any(changes[old] != other for old, other in zip(stored.variables, new.variables, strict=True)):
        return None
    if all(old == other for old, other in changes.items()):
        return translation
    places = _variables(translation)
    edits: dict[Range, str] = {}
    for old, new_one in changes.items():
        spellings = _spellings(old, new_one, source_language, target_language)
        found = [place for place in places if translation[slice(*place)] in spellings]
        if len(found) != stored.variables.count(old) or any(place in edits for place in found):
            return None
        is_same_plural = _plural(old, source_language, target_language) == _plural(
            new_one, source_language, target_language
        )
        if not is_same_plural and any(_counts(translation[end:], stored.text) for _, end in found):
            return None
        edits |= {place: spellings[translation[slice(*place)]] for place in found}
    parts: list[str] = []
    position = 0
    for (start, end), text in sorted(edits.items()):
        parts += translation[position:start], text
        position = end
    return "".join((*parts, translation[position:]))


def _spellings(old: str, new: str, source_language: str, target_language: str) -> dict[str, str]:
    """Return the forms that a variable may have in a translation, each with the same form of the new one."""
    if not (old.isascii() and new.isascii() and _NUMBER.fullmatch(old) and _NUMBER.fullmatch(new)):
        return {old: new}
    # A plain number that gets separators, or loses them, is written as the target language does it.
    localized = forms(new, source_language, target_language)[1:2] or (new,)
    copied = new if old.isdecimal() == new.isdecimal() else localized[0]
    return {**dict.fromkeys(forms(old, source_language, target_language), localized[0]), old: copied}


def _plural(variable: str, source_language: str, target_language: str) -> str | None:
    """Return the plural category of a number, "" for other variables; numbers in text are likely to be counted."""
    return plural_category(variable, source_language, target_language) if _NUMBER.fullmatch(variable) else ""


def _counts(following: str, source: str) -> bool:
    """Return whether a number in front of a text counts its first word, unless this is a unit: as in the source."""
    word = _WORD.match(following.lstrip())
    return word is not None and word[0] not in _WORD.findall(source)


def _variables(text: str) -> list[Range]:
    """Return the places of numbers and machine-readable spans, in their order. A symbol is none: it is in the text."""
    spans = [(span.start, span.end) for span in find_spans(text) if span.kind is not SpanKind.SYMBOL]
    if not spans:
        return [match.span() for match in _NUMBER.finditer(text)]
    found: list[Range] = []
    position = 0
    for start, end in (*spans, (len(text), len(text))):
        found += [match.span() for match in _NUMBER.finditer(text, position, start)]
        if end > start:
            found.append((start, end))
        position = end
    return found
