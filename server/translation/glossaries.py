"""Stored glossaries: an SQLite file, or memory without one.

A glossary of several dictionaries, one for each pair of languages, has a glossary of the store for each of them. A
stored glossary that belongs to no other is one with a single dictionary, under its own id.
"""

import os
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cachetools import LRUCache

from server.interface.errors import InvalidRequest, NotFound, StorageFull, StoreBusy, means_storage_full
from server.text.glossary import Glossary

MAX_GLOSSARIES = 1000
_MAX_NAME_CHARACTERS = 1024
DEFAULT_MAX_BYTES = 64_000_000
_READY_BYTES = 32_000_000  # of stored glossaries that are kept in memory, ready for use
_ENTRY_BYTES, _CHARACTER_BYTES = 400, 4  # of a glossary that is ready, for each entry and its characters: measured
_START_SECONDS = 5.0  # for a file to be unlocked when it is opened; a request does not wait for that

_SCHEMA = """
CREATE TABLE IF NOT EXISTS glossaries (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, created TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
    glossary TEXT NOT NULL REFERENCES glossaries (id) ON DELETE CASCADE,
    place INTEGER NOT NULL, term TEXT NOT NULL, translation TEXT NOT NULL,
    PRIMARY KEY (glossary, place)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS multilingual (id TEXT PRIMARY KEY, name TEXT NOT NULL, created TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS members (
    glossary TEXT NOT NULL REFERENCES multilingual (id) ON DELETE CASCADE,
    dictionary TEXT PRIMARY KEY REFERENCES glossaries (id) ON DELETE CASCADE, place INTEGER NOT NULL
) WITHOUT ROWID;
"""
_SIZE = "SELECT coalesce(sum(length(CAST(term AS BLOB)) + length(CAST(translation AS BLOB))), 0) FROM entries"
_SELECT = "SELECT id, name, source, target, created, (SELECT count(*) FROM entries WHERE glossary = id) FROM glossaries"
_SINGLE = "WHERE id NOT IN (SELECT dictionary FROM members) ORDER BY created, id"


@dataclass(frozen=True, slots=True)
class GlossaryInfo:
    """A stored glossary without its entries."""

    id: str
    name: str
    source: str
    target: str
    created: datetime
    num_entries: int


def memory_of(entries: Mapping[str, str | Sequence[str]]) -> int:
    """Return the approximate memory of a glossary with these entries, in bytes. Every alternative counts as one."""
    alternatives = [(target,) if isinstance(target, str) else target for target in entries.values()]
    num_characters = sum(map(len, entries)) + sum(sum(map(len, each)) for each in alternatives)
    return _ENTRY_BYTES * max(len(entries), sum(map(len, alternatives))) + _CHARACTER_BYTES * num_characters


class GlossaryStore:
    """Stores glossaries, up to `max_bytes` of terms and translations. Thread-safe; methods may block for a moment.

    Without a file they are in memory, or in a temporary file in `folder`, which ends with the process. Methods raise
    `StoreBusy` at once while another process has locked the file.
    """

    def __init__(self, path: Path | None, max_bytes: int = DEFAULT_MAX_BYTES, folder: Path | None = None) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._depth = 0  # of transactions within the first one
        self._version = -1  # of the file, when the attributes below were set
        self._stored_bytes: int | None = None  # of all entries; None: not counted yet
        self._num_deletions = 0
        try:
            self._database = _opened(path, folder)
        except (sqlite3.Error, OSError) as error:
            raise ValueError(f"{path or folder} cannot be used to store glossaries: {error}") from error
        self._ready: LRUCache[str, Glossary] = LRUCache(_READY_BYTES, lambda glossary: memory_of(glossary.entries))

    def create(self, name: str, source: str, target: str, entries: Mapping[str, str]) -> GlossaryInfo:
        """Store a glossary. Raises `InvalidRequest` if it is invalid, or if the store is full."""
        check_name(name)
        glossary = Glossary(entries)
        num_bytes = sum(len(text.encode()) for entry in entries.items() for text in entry)
        info = GlossaryInfo(str(uuid.uuid4()), name, source, target, datetime.now(UTC), len(entries))
        with self._used():
            [[count]] = self._database.execute("SELECT count(*) FROM glossaries")
            if count >= MAX_GLOSSARIES:
                raise InvalidRequest(f"the store is full: {count} of {MAX_GLOSSARIES} glossaries; delete some")
            stored = self._num_bytes()
            if stored + num_bytes > self._max_bytes:
                raise InvalidRequest(
                    f"the store is full: {stored} of {self._max_bytes} bytes; delete some glossaries. "
                    f"Given: {num_bytes} bytes"
                )
            self._database.execute(
                "INSERT INTO glossaries VALUES (?, ?, ?, ?, ?)",
                (info.id, name, source, target, info.created.isoformat()),
            )
            self._database.executemany(
                "INSERT INTO entries VALUES (?, ?, ?, ?)",
                [(info.id, place, *entry) for place, entry in enumerate(entries.items())],
            )
            self._stored_bytes = stored + num_bytes
            num_deletions = self._num_deletions
        self._keep(info.id, glossary, num_deletions)
        return info

    def all(self) -> list[GlossaryInfo]:
        """Return all glossaries that are no dictionary of another, the oldest first."""
        with self._used():
            return [_info(row) for row in self._database.execute(f"{_SELECT} {_SINGLE}").fetchall()]

    def info(self, glossary_id: str) -> GlossaryInfo:
        """Return one glossary without its entries. Raises `NotFound`."""
        with self._used():
            row = self._database.execute(f"{_SELECT} WHERE id = ?", (glossary_id,)).fetchone()
        if row is None:
            raise NotFound("Glossary not found")
        return _info(row)

    def glossary(self, glossary_id: str) -> Glossary:
        """Return one glossary. Raises `NotFound`."""
        with self._used():
            if glossary_id in self._ready:
                return self._ready[glossary_id]
            num_deletions = self._num_deletions
            rows = self._database.execute(
                "SELECT term, translation FROM entries WHERE glossary = ? ORDER BY place", (glossary_id,)
            ).fetchall()
        if not rows:
            raise NotFound("Glossary not found")
        glossary = Glossary(dict(rows))
        self._keep(glossary_id, glossary, num_deletions)
        return glossary

    def delete(self, glossary_id: str) -> None:
        """Delete one glossary. Raises `NotFound`."""
        with self._used():
            self._ready.pop(glossary_id, None)
            self._num_deletions += 1
            self._stored_bytes = None
            if not self._database.execute("DELETE FROM glossaries WHERE id = ?", (glossary_id,)).rowcount:
                raise NotFound("Glossary not found")

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield the database in a transaction, for tables besides those of the store.

        Methods that are called within belong to the transaction.
        """
        with self._used():
            yield self._database

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Hold the lock and a transaction, the outer one if there is one.

        Raises `StorageFull` if the file cannot grow, and `StoreBusy` if it is locked or cannot be written.
        """
        with self._lock:
            if self._depth:
                yield
                return
            self._depth = 1
            try:
                with self._database:
                    self._forget_changes()
                    yield
            except sqlite3.OperationalError as error:
                if means_storage_full(error):
                    raise StorageFull("the server has no space left for glossaries; delete some") from error
                raise StoreBusy(f"the file of stored glossaries cannot be used now: {error}; retry later") from error
            except BaseException:
                self._stored_bytes = None  # the transaction is undone
                raise
            finally:
                self._depth = 0

    def _forget_changes(self) -> None:
        """Forget what another process may have changed since."""
        [version] = self._database.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version, self._stored_bytes = version, None
            self._num_deletions += 1
            self._ready.clear()

    def _num_bytes(self) -> int:
        """Return the bytes of all entries."""
        if self._stored_bytes is None:
            [self._stored_bytes] = self._database.execute(_SIZE).fetchone()
        return self._stored_bytes

    def _keep(self, glossary_id: str, glossary: Glossary, num_deletions: int) -> None:
        """Keep a glossary ready for use, unless it is larger than the limit, or may have been deleted meanwhile."""
        with self._lock:
            if num_deletions == self._num_deletions and memory_of(glossary.entries) <= _READY_BYTES:
                self._ready[glossary_id] = glossary


def check_name(name: str) -> None:
    """Raise `InvalidRequest` for an invalid name of a glossary."""
    if not name.strip() or len(name) > _MAX_NAME_CHARACTERS:
        raise InvalidRequest(
            f"`name` must have 1 to {_MAX_NAME_CHARACTERS} characters, and not only spaces. Given: {len(name)}"
        )


def _opened(path: Path | None, folder: Path | None) -> sqlite3.Connection:
    name = ":memory:" if path is None else str(path)
    is_temporary = path is None and folder is not None
    if is_temporary:
        handle, name = tempfile.mkstemp(prefix="kvasir-glossaries-", dir=folder)
        os.close(handle)
    database = sqlite3.connect(name, timeout=_START_SECONDS, check_same_thread=False)
    if is_temporary:
        database.execute("PRAGMA journal_mode = MEMORY")
        database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA foreign_keys = ON")
    database.executescript(_SCHEMA)
    database.execute("PRAGMA busy_timeout = 0")
    if is_temporary:
        Path(name).unlink()  # the open file lives as long as the process, and leaves nothing behind
    return database


def _info(row: tuple[str, str, str, str, str, int]) -> GlossaryInfo:
    glossary_id, name, source, target, created, num_entries = row
    return GlossaryInfo(glossary_id, name, source, target, datetime.fromisoformat(created), num_entries)


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
