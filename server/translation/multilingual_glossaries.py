"""Glossaries of several dictionaries, one for each pair of languages, on top of the store of glossaries.

Each dictionary is a glossary of the store. A stored glossary that belongs to no other is one with a single dictionary,
under its own id.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from server.interface.errors import InvalidRequest, NotFound
from server.text.glossary import Glossary
from server.translation.glossary_store import GlossaryInfo, GlossaryStore, check_name

MAX_DICTIONARIES = 100

Pair = tuple[str, str]
"""Source and target language."""


@dataclass(frozen=True, slots=True)
class MultilingualInfo:
    """A glossary without its entries; `dictionaries` in the order of their creation."""

    id: str
    name: str
    created: datetime
    dictionaries: tuple[GlossaryInfo, ...]

    def dictionary(self, pair: Pair) -> GlossaryInfo | None:
        """Return the dictionary from and to these languages, if there is one."""
        return next((each for each in self.dictionaries if (each.source, each.target) == pair), None)


class MultilingualGlossaries:
    """Glossaries of several dictionaries. Thread-safe; methods may block for a moment, and raise as the store does."""

    def __init__(self, store: GlossaryStore) -> None:
        self._store = store

    def create(self, name: str, dictionaries: Mapping[Pair, Mapping[str, str]]) -> MultilingualInfo:
        """Store a glossary with these dictionaries, all or none. Raises `InvalidRequest`."""
        check_name(name)
        if not 1 <= len(dictionaries) <= MAX_DICTIONARIES:
            raise InvalidRequest(
                f"a glossary must have 1 to {MAX_DICTIONARIES} dictionaries. Given: {len(dictionaries)}"
            )
        glossary_id = str(uuid.uuid4())
        with self._store.connection():
            created = [self._store.create(name, *pair, entries).id for pair, entries in dictionaries.items()]
            self._add(glossary_id, name, datetime.now(UTC), created)
            return self.info(glossary_id)

    def all(self) -> list[MultilingualInfo]:
        """Return all glossaries, the oldest first."""
        with self._store.connection() as database:
            ids = [glossary_id for [glossary_id] in database.execute("SELECT id FROM multilingual").fetchall()]
            found = [self.info(glossary_id) for glossary_id in ids] + [_single(info) for info in self._store.all()]
        return sorted(found, key=lambda info: (info.created, info.id))

    def info(self, glossary_id: str) -> MultilingualInfo:
        """Return one glossary without its entries. Raises `NotFound`."""
        with self._store.connection() as database:
            row = database.execute("SELECT name, created FROM multilingual WHERE id = ?", (glossary_id,)).fetchone()
            if row is None:
                return _single(self._store.info(glossary_id))
            members = database.execute(
                "SELECT dictionary FROM members WHERE glossary = ? ORDER BY place", (glossary_id,)
            ).fetchall()
            dictionaries = tuple(self._store.info(dictionary_id) for [dictionary_id] in members)
        return MultilingualInfo(glossary_id, row[0], datetime.fromisoformat(row[1]), dictionaries)

    def entries(self, glossary_id: str, pair: Pair) -> Glossary:
        """Return one dictionary. Raises `NotFound`."""
        return self._store.glossary(self._dictionary(self.info(glossary_id), pair).id)

    def rename(self, glossary_id: str, name: str) -> None:
        """Give a glossary another name. Raises `NotFound` and `InvalidRequest`."""
        check_name(name)
        with self._store.connection() as database:
            self._own(self.info(glossary_id))
            database.execute("UPDATE multilingual SET name = ? WHERE id = ?", (name, glossary_id))

    def put(self, glossary_id: str, pair: Pair, entries: Mapping[str, str]) -> GlossaryInfo:
        """Replace the dictionary of a pair by one with these entries, or add it. Raises `NotFound`."""
        with self._store.connection() as database:
            info = self.info(glossary_id)
            before = info.dictionary(pair)
            if before is None and len(info.dictionaries) >= MAX_DICTIONARIES:
                raise InvalidRequest(f"a glossary must have 1 to {MAX_DICTIONARIES} dictionaries. Given: one more")
            created = self._store.create(info.name, *pair, entries)
            self._own(info)
            [place] = database.execute(
                "SELECT coalesce(max(place), 0) + 1 FROM members WHERE glossary = ?", (glossary_id,)
            ).fetchone()
            database.execute("INSERT INTO members VALUES (?, ?, ?)", (glossary_id, created.id, place))
            if before is not None:
                database.execute(
                    "UPDATE members SET place = (SELECT place FROM members WHERE dictionary = ?) WHERE dictionary = ?",
                    (before.id, created.id),
                )
                self._store.delete(before.id)
        return created

    def merge(self, glossary_id: str, pair: Pair, entries: Mapping[str, str]) -> GlossaryInfo:
        """Add entries to the dictionary of a pair, or add the dictionary. Equal terms get the new translation."""
        with self._store.connection():
            before = self.info(glossary_id).dictionary(pair)
            old = {} if before is None else self._store.glossary(before.id).entries
            # A stored term has one translation.
            kept = {term: given if isinstance(given, str) else given[0] for term, given in old.items()}
            return self.put(glossary_id, pair, {**kept, **entries})

    def delete(self, glossary_id: str) -> None:
        """Delete a glossary with all dictionaries. Raises `NotFound`."""
        with self._store.connection() as database:
            info = self.info(glossary_id)
            database.execute("DELETE FROM multilingual WHERE id = ?", (glossary_id,))
            for dictionary in info.dictionaries:
                self._store.delete(dictionary.id)

    def delete_dictionary(self, glossary_id: str, pair: Pair) -> None:
        """Delete the dictionary of a pair. Raises `NotFound`, and `InvalidRequest` for the last one."""
        with self._store.connection():
            info = self.info(glossary_id)
            dictionary = self._dictionary(info, pair)
            if len(info.dictionaries) == 1:
                raise InvalidRequest("a glossary must have 1 dictionary or more; delete the glossary instead")
            self._store.delete(dictionary.id)

    def _dictionary(self, info: MultilingualInfo, pair: Pair) -> GlossaryInfo:
        found = info.dictionary(pair)
        if found is None:
            raise NotFound("Dictionary not found")
        return found

    def _own(self, info: MultilingualInfo) -> None:
        """Give a glossary that is a single dictionary of the store a name and dictionaries of its own."""
        with self._store.connection() as database:
            known = database.execute("SELECT 1 FROM multilingual WHERE id = ?", (info.id,)).fetchone()
        if known is None:
            self._add(info.id, info.name, info.created, [each.id for each in info.dictionaries])

    def _add(self, glossary_id: str, name: str, created: datetime, dictionary_ids: list[str]) -> None:
        with self._store.connection() as database:
            database.execute("INSERT INTO multilingual VALUES (?, ?, ?)", (glossary_id, name, created.isoformat()))
            database.executemany(
                "INSERT INTO members VALUES (?, ?, ?)",
                [(glossary_id, dictionary_id, place) for place, dictionary_id in enumerate(dictionary_ids)],
            )


def _single(info: GlossaryInfo) -> MultilingualInfo:
    return MultilingualInfo(info.id, info.name, info.created, (info,))
