"""Entries of glossaries in the notations of the DeepL-compatible protocol."""

import csv
import io
from collections.abc import Collection, Iterable, Sequence

from server.http.protocols.deepl.fields import language_code
from server.interface.errors import InvalidRequest
from server.translation.glossaries import Pair

Dictionaries = dict[Pair, dict[str, str]]
"""Entries of each pair of languages."""

SEPARATORS = {"tsv": "\t", "csv": ","}
_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


def language_pair(source: str, target: str) -> Pair:
    """Return the languages of a dictionary as they are stored: in lower case, without a variant."""
    return language_code(source).lower(), language_code(target).lower()


def parse_entries(text: str, separator: str, pair: Pair, others: Collection[Pair] = ()) -> Dictionaries:
    """Return the dictionaries that a list of entries has: the one of `pair`, and those of `others` that rows name.

    A row has a term, its translation and, optionally, the languages of both; further columns and blank rows do not
    count. Raises `InvalidRequest` for a row without a translation, with one language, with languages of no dictionary,
    or with a term that another row of its dictionary has.
    """
    dictionaries: Dictionaries = {}
    for number, row in enumerate(_rows(text.removeprefix(_BYTE_ORDER_MARK), separator), 1):
        term, translation, source, target, *_ = [*(field.strip() for field in row), "", "", "", ""]
        if not any(field.strip() for field in row):
            continue
        if not term or not translation:
            raise InvalidRequest(f"entry {number} of the glossary must be a term and its translation")
        if bool(source) != bool(target):
            raise InvalidRequest(f"entry {number} of the glossary must have both languages or none")
        its_pair = language_pair(source, target) if source else pair
        if its_pair != pair and its_pair not in others:
            expected = " or ".join(f"{each[0]} to {each[1]}" for each in dict.fromkeys((pair, *others)))
            raise InvalidRequest(
                f"entry {number} of the glossary is from {its_pair[0]} to {its_pair[1]}. Must be: {expected}"
            )
        entries = dictionaries.setdefault(its_pair, {})
        if term in entries:
            raise InvalidRequest(f"entry {number} of the glossary repeats a term: {term!r}")
        entries[term] = translation
    return dictionaries or {pair: {}}


def _rows(text: str, separator: str) -> Iterable[Sequence[str]]:
    if separator == "\t":
        return (line.split("\t") for line in text.splitlines())
    try:
        return list(csv.reader(io.StringIO(text), delimiter=separator, strict=True))
    except csv.Error as error:
        raise InvalidRequest(f"invalid CSV of glossary entries: {error}") from error
