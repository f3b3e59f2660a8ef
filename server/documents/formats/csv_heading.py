"""Heading of a table: whether its first row has one, and the columns that it names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import regex

from server.interface.errors import InvalidDocument

_ROWS = 200  # that are compared with the first one
_MAX_NAME_CHARACTERS = 60
_IDENTIFIER = regex.compile(r"[a-z][a-z0-9]*+(?:[_.-][a-z0-9]++)*+|[a-z]++(?:[A-Z][a-z0-9]*+)++")
# Names of columns, one of which makes a row of identifiers a heading: other words in lower case may be data.
_USUAL_NAMES = frozenset(
    (
        "category", "code", "comment", "content", "context", "date", "description", "email", "id", "key", "label",
        "lang", "language", "locale", "message", "msgid", "name", "notes", "source", "string", "tags", "target", "text",
        "title", "translation", "type", "url", "value",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Heading:
    """First row of a table."""

    names: tuple[str, ...]
    is_heading: bool

    def chosen(self, columns: Sequence[str]) -> frozenset[int]:
        """Return the indexes of columns given by name, without regard to case, or by number from 1.

        Raises `InvalidDocument` with the columns of the table.
        """
        by_name = {name.strip().casefold(): index for index, name in reversed(list(enumerate(self.names)))}
        chosen = set()
        for column in columns:
            wanted = column.strip().casefold()
            if wanted in by_name:
                chosen.add(by_name[wanted])
            elif wanted.isdecimal() and 1 <= int(wanted) <= len(self.names):
                chosen.add(int(wanted) - 1)
            else:
                available = ", ".join(name.strip()[:_MAX_NAME_CHARACTERS] for name in self.names[:30])
                raise InvalidDocument(
                    f"`columns` must be numbers from 1 to {len(self.names)}, or among {available}. "
                    f"Given: {column[:40]!r}"
                )
        return frozenset(chosen)


def read_heading(rows: Iterable[Sequence[str]]) -> Heading:
    """Return the first of `rows`. It is a heading if its cells are different short names, and one of these holds:

    a column below has numbers only, or all names are identifiers, and not plain words.
    """
    first, *others = list(islice(rows, _ROWS)) or [()]
    names = tuple(first)
    stripped = [name.strip() for name in names]
    are_names = (
        len(stripped) > 1
        and len(set(stripped)) == len(stripped)
        and all(0 < len(name) <= _MAX_NAME_CHARACTERS and not name[0].isdigit() for name in stripped)
        and any(len(row) == len(names) for row in others)
    )
    are_identifiers = all(map(_IDENTIFIER.fullmatch, stripped)) and any(
        name in _USUAL_NAMES or not name.isalpha() or not name.islower() for name in stripped
    )
    is_heading = are_names and (
        are_identifiers
        or any(_is_of_numbers([row[column] for row in others if column < len(row)]) for column in range(len(names)))
    )
    return Heading(names, is_heading)


def _is_of_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(not any(map(str.isalpha, cell)) and any(map(str.isdigit, cell)) for cell in filled)
