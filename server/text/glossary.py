"""Glossaries: the terms that a sentence has, and those that its translation must have.

A term has one translation, or alternatives such as a singular and a plural, of which the model chooses one. The terms
are a sorted list. The last term that is not greater than the text at a place begins with every term that the text
begins with there: one binary search finds the longest, and links from a term to its own beginnings find the shorter
ones. So the time for a place hardly depends on the number of terms.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import regex

from server.interface.errors import InvalidRequest
from server.text.unicode_text import replace_lone_surrogates

_WORD_CHARACTER = regex.compile(r"\w")
_OUTSIDE_WORDS = regex.compile(r"(?<!\w)")


class TermIndex:
    """Finds terms between word boundaries, or with `anywhere` at every place. Immutable, so threads may share it."""

    def __init__(self, terms: Iterable[str], *, anywhere: bool = False) -> None:
        self._terms = sorted(set(terms))
        self._anywhere = anywhere
        self._max_characters = max(map(len, self._terms), default=0)
        self._first_characters = frozenset(term[0] for term in self._terms)
        # For each term the index of the longest other term that it begins with, or -1.
        self._beginnings: list[int] = []
        begun: list[int] = []
        for index, term in enumerate(self._terms):
            while begun and not term.startswith(self._terms[begun[-1]]):
                begun.pop()
            self._beginnings.append(begun[-1] if begun else -1)
            begun.append(index)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of the longest term at each place. Terms may overlap."""
        if not self._terms:
            return
        starts = range(len(text)) if self._anywhere else map(_start_of, _OUTSIDE_WORDS.finditer(text))
        for start in starts:
            if text[start : start + 1] in self._first_characters and (end := self._longest(text, start)):
                yield start, end

    def _longest(self, text: str, start: int) -> int:
        """Return the end of the longest term at `start`; 0 for none."""
        index = bisect_right(self._terms, text[start : start + self._max_characters]) - 1
        while index >= 0:
            end = start + len(self._terms[index])
            if text.startswith(self._terms[index], start) and (self._anywhere or not _WORD_CHARACTER.match(text, end)):
                return end
            index = self._beginnings[index]
        return 0


def _start_of(match: "regex.Match[str]") -> int:
    return match.start()


MAX_TERM_CHARACTERS = 200
MAX_ENTRIES = 10_000
MAX_ALTERNATIVES = 8

# Languages written without spaces: a term may stand anywhere.
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")

# Characters that may stand around a term which is a whole sentence. Others, as in `C++`, make another word of it.
_AROUND = frozenset(" \t\"'“”„«»‹›‘’()[]¿¡.,;:!?…–—")

Targets = tuple[str, ...]  # alternatives of one another


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """A term from `start` to `end` of a sentence, and its translations, in all caps where the term is."""

    start: int
    end: int
    term: str
    targets: Targets


class Glossary:
    """Entries from source terms to target terms. Immutable, so threads may share it.

    A term in lower case is found in any case, and one with capitals as it is written or in all caps.
    Raises `InvalidRequest` for invalid entries.
    """

    def __init__(self, entries: Mapping[str, str | Sequence[str]]) -> None:
        self.entries = dict(entries)
        if not entries:
            raise InvalidRequest("a glossary must have at least 1 entry. Given: 0")
        if len(entries) > MAX_ENTRIES:
            raise InvalidRequest(f"a glossary must have at most {MAX_ENTRIES} entries. Given: {len(entries)}")
        self._targets: dict[str, dict[str, Targets]] = {}
        self._terms_in_caps: dict[tuple[str, str], str] = {}
        for term, translation in entries.items():
            given = (translation,) if isinstance(translation, str) else translation
            targets = tuple(map(replace_lone_surrogates, given))  # they may become the answer unread by the model
            if not 1 <= len(targets) <= MAX_ALTERNATIVES:
                raise InvalidRequest(
                    f"a term of a glossary must have 1 to {MAX_ALTERNATIVES} translations. Given: {len(targets)}"
                )
            for each in (term, *targets):
                _check_term(each)
            folded = term.lower()
            self._targets.setdefault(folded, {})[term] = tuple(map(replace_lone_surrogates, targets))
            self._terms_in_caps.setdefault((folded, term.upper()), term)
        unspaced = {folded for folded in self._targets if _UNSPACED.search(folded)}
        self._indexes = (TermIndex(self._targets.keys() - unspaced), TermIndex(unspaced, anywhere=True))

    def target_terms(self, sentence: str) -> tuple[Targets, ...]:
        """Return the terms that the translation of `sentence` must have, in the order of the source terms.

        Of each term any alternative will do.
        """
        return tuple(dict.fromkeys(each.targets for each in self._found(sentence)))

    def source_terms(self, text: str) -> tuple[str, ...]:
        """Return the terms that `text` has, in their order."""
        return tuple(dict.fromkeys(each.term for each in self._found(text)))

    def only_term(self, sentence: str) -> FoundTerm | None:
        """Return the term of a sentence that has nothing else but punctuation around it, with the first translation.

        None for any other sentence.
        """
        if len(sentence) > 2 * MAX_TERM_CHARACTERS:
            return None
        found = self._found(sentence)
        if len(found) != 1:
            return None
        [term] = found
        if not _AROUND.issuperset(sentence[: term.start] + sentence[term.end :]):
            return None
        is_capital = sentence[term.start].isupper() and not term.term[0].isupper()
        return replace(term, targets=(with_capital(term.targets[0]) if is_capital else term.targets[0],))

    def _found(self, sentence: str) -> list[FoundTerm]:
        """Return the terms of a sentence in their order."""
        lowered = sentence.lower()
        if len(lowered) != len(sentence):  # some letters become two in lower case: then only the same case matches
            lowered = sentence
        found: dict[int, FoundTerm] = {}
        for index in self._indexes:
            last = 0  # end of the last term: one inside it does not count, unless the longer one's case did not match
            for start, end in index.find(lowered):
                entry = self._entry(lowered[start:end], sentence[start:end])
                if start >= last and entry is not None:
                    found[start] = FoundTerm(start, end, *entry)
                    last = end
        return [each for _, each in sorted(found.items())]

    def _entry(self, folded: str, written: str) -> tuple[str, Targets] | None:
        targets = self._targets[folded]
        if written in targets:
            return written, targets[written]
        is_in_caps = written.isupper() and len(written) > 1
        if folded in targets and not is_in_caps:
            return folded, targets[folded]
        term = self._terms_in_caps.get((folded, written)) if is_in_caps else None
        return None if term is None else (term, tuple(target.upper() for target in targets[term]))


def with_capital(term: str) -> str:
    """Return a term with a capital at its beginning."""
    return term[:1].upper() + term[1:]


def capitalized_like(source: str, translation: str, terms: Iterable[Targets]) -> str:
    """Return `translation` with a capital at its beginning if `source` has one and a target term comes first."""
    if source[:1].isupper() and any(translation.startswith(targets) for targets in terms):
        return with_capital(translation)
    return translation


def _check_term(term: str) -> None:
    if not term.strip() or len(term) > MAX_TERM_CHARACTERS:
        raise InvalidRequest(
            f"a term of a glossary must have 1 to {MAX_TERM_CHARACTERS} characters, and not only spaces. "
            f"Given: {len(term)}"
        )
    if any(character in term for character in "\t\r\n"):
        raise InvalidRequest("a term of a glossary must not contain a tab or a line break")
