"""Glossaries: the terms that a sentence has, and those that its translation must have."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

import regex

from server.interface.errors import InvalidRequest

MAX_TERM_CHARACTERS = 200
MAX_ENTRIES = 10_000
_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"

# Languages written without spaces: a term may stand anywhere.
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


class Glossary:
    """Entries from source terms to target terms. Immutable, so threads may share it.

    A term in lower case is found in any case, and one with capitals as it is written or in all caps.
    Raises `InvalidRequest` for invalid entries.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self.entries = dict(entries)
        if not entries:
            raise InvalidRequest("a glossary must have at least 1 entry. Given: 0")
        if len(entries) > MAX_ENTRIES:
            raise InvalidRequest(f"a glossary must have at most {MAX_ENTRIES} entries. Given: {len(entries)}")
        for term in (*entries, *entries.values()):
            _check_term(term)
        self._by_folded: dict[str, list[str]] = {}
        for term in entries:
            self._by_folded.setdefault(term.lower(), []).append(term)
        spaced = [term for term in self._by_folded if not _UNSPACED.search(term)]
        unspaced = [term for term in self._by_folded if _UNSPACED.search(term)]
        self._patterns = [
            regex.compile(pattern, terms=terms)
            for pattern, terms in ((r"(?<!\w)\L<terms>(?!\w)", spaced), (r"\L<terms>", unspaced))
            if terms
        ]

    def target_terms(self, sentence: str) -> tuple[str, ...]:
        """Return the terms that the translation of `sentence` must have, in the order of the source terms."""
        lowered = sentence.lower()
        if len(lowered) != len(sentence):  # some letters become two in lower case: then only the same case matches
            lowered = sentence
        found: dict[int, str] = {}
        for pattern in self._patterns:
            end = 0  # of the last match: a term inside another does not count, unless the other's case did not match
            for match in pattern.finditer(lowered, overlapped=True):
                target = self._target(match.group(), sentence[match.start() : match.end()])
                if match.start() >= end and target is not None:
                    found[match.start()] = target
                    end = match.end()
        return tuple(dict.fromkeys(target for _, target in sorted(found.items())))

    def _target(self, folded: str, written: str) -> str | None:
        terms = self._by_folded[folded]
        if written in terms:
            return self.entries[written]
        if folded in terms and not (written.isupper() and len(written) > 1):
            return self.entries[folded]
        if written.isupper() and len(written) > 1:
            found = next((term for term in terms if term.upper() == written), None)
            return None if found is None else self.entries[found].upper()
        return None


def capitalized_like(source: str, translation: str, targets: Iterable[str]) -> str:
    """Return `translation` with a capital at its beginning if `source` has one and a target term comes first."""
    if source[:1].isupper() and any(translation.startswith(target) for target in targets):
        return translation[:1].upper() + translation[1:]
    return translation


def parse_entries(text: str, separator: str) -> dict[str, str]:
    """Return entries of one line each, term and translation with a `separator` between; blank lines do not count.

    Raises `InvalidRequest` for a line without a translation, and for a repeated term.
    """
    entries: dict[str, str] = {}
    for number, row in enumerate(_rows(text.removeprefix(_BYTE_ORDER_MARK), separator), 1):
        if not any(field.strip() for field in row):
            continue
        fields = [field.strip() for field in row]
        if len(fields) < 2 or not fields[0] or not fields[1]:
            raise InvalidRequest(f"entry {number} of the glossary must be a term and its translation")
        if fields[0] in entries:
            raise InvalidRequest(f"entry {number} of the glossary repeats a term: {fields[0]!r}")
        entries[fields[0]] = fields[1]
    return entries


def _rows(text: str, separator: str) -> Iterable[Sequence[str]]:
    if separator == "\t":
        return (line.split("\t") for line in text.splitlines())
    try:
        return list(csv.reader(io.StringIO(text), delimiter=separator, strict=True))
    except csv.Error as error:
        raise InvalidRequest(f"invalid CSV of glossary entries: {error}") from error


def _check_term(term: str) -> None:
    if not term.strip() or len(term) > MAX_TERM_CHARACTERS:
        raise InvalidRequest(
            f"a term of a glossary must have 1 to {MAX_TERM_CHARACTERS} characters, and not only spaces. "
            f"Given: {len(term)}"
        )
    if any(character in term for character in "\t\r\n"):
        raise InvalidRequest("a term of a glossary must not contain a tab or a line break")
