"""Glossaries: the terms that a sentence has, and those that its translation must have."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

import regex

from server.interface.errors import InvalidRequest
from server.text.term_index import TermIndex

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
        self._targets: dict[str, dict[str, str]] = {}
        self._targets_in_caps: dict[tuple[str, str], str] = {}
        for term, target in entries.items():
            folded = term.lower()
            self._targets.setdefault(folded, {})[term] = target
            self._targets_in_caps.setdefault((folded, term.upper()), target.upper())
        unspaced = {folded for folded in self._targets if _UNSPACED.search(folded)}
        self._indexes = (TermIndex(self._targets.keys() - unspaced), TermIndex(unspaced, anywhere=True))

    def target_terms(self, sentence: str) -> tuple[str, ...]:
        """Return the terms that the translation of `sentence` must have, in the order of the source terms."""
        lowered = sentence.lower()
        if len(lowered) != len(sentence):  # some letters become two in lower case: then only the same case matches
            lowered = sentence
        found: dict[int, str] = {}
        for index in self._indexes:
            last = 0  # end of the last term: one inside it does not count, unless the longer one's case did not match
            for start, end in index.find(lowered):
                target = self._target(lowered[start:end], sentence[start:end])
                if start >= last and target is not None:
                    found[start] = target
                    last = end
        return tuple(dict.fromkeys(target for _, target in sorted(found.items())))

    def _target(self, folded: str, written: str) -> str | None:
        targets = self._targets[folded]
        if written in targets:
            return targets[written]
        is_in_caps = written.isupper() and len(written) > 1
        if folded in targets and not is_in_caps:
            return targets[folded]
        return self._targets_in_caps.get((folded, written)) if is_in_caps else None


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
