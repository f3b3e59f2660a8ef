"""Stored glossaries: an SQLite file, or memory without one. A glossary has a dictionary for each pair of languages."""

import os
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from cachetools import LRUCache

from server.interface.errors import InvalidRequest, NotFound, StorageFull, StoreBusy, means_storage_full
from server.text.glossary import Glossary

MAX_GLOSSARIES = 1000  # each dictionary counts
MAX_DICTIONARIES = 100  # of one glossary
_MAX_NAME_CHARACTERS = 1024
DEFAULT_MAX_BYTES = 64_000_000
_READY_BYTES = 32_000_000  # of stored glossaries that are kept in memory, ready for use
_ENTRY_BYTES, _CHARACTER_BYTES = 400, 4  # of a glossary that is ready, for each entry and its characters: measured
_START_SECONDS = 5.0  # for a file to be unlocked when it is opened; a request does not wait for that

# A row of `glossaries` is a dictionary, and one of `multilingual` a glossary. In files of version 0.2.0 a glossary may
# be a row of the first alone.
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
INSERT INTO multilingual SELECT id, name, created FROM glossaries WHERE id NOT IN (SELECT dictionary FROM members);
INSERT INTO members SELECT id, id, 0 FROM glossaries WHERE id NOT IN (SELECT dictionary FROM members);
"""
_SIZE = "SELECT coalesce(sum(length(CAST(term AS BLOB)) + length(CAST(translation AS BLOB))), 0) FROM entries"
_SELECT = """
SELECT multilingual.id, multilingual.name, multilingual.created, dictionary.id, source, target,
    (SELECT count(*) FROM entries WHERE glossary = dictionary.id)
FROM multilingual JOIN members ON members.glossary = multilingual.id
JOIN glossaries AS dictionary ON dictionary.id = members.dictionary
WHERE ?1 IN ('', multilingual.id) ORDER BY multilingual.created, multilingual.id, place
"""

Pair = tuple[str, str]
"""Source and target language."""


@dataclass(frozen=True, slots=True)
class DictionaryInfo:
    """A dictionary of a glossary without its entries."""

    id: str
    source: str
    target: str
    num_entries: int


@dataclass(frozen=True, slots=True)
class GlossaryInfo:
    """A stored glossary without its entries; `dictionaries` in the order of their creation."""

    id: str
    name: str
    created: datetime
    dictionaries: tuple[DictionaryInfo, ...]

    def dictionary(self, pair: Pair) -> DictionaryInfo:
        """Return the dictionary from and to these languages. Raises `NotFound`."""
        found = next((each for each in self.dictionaries if (each.source, each.target) == pair), None)
        if found is None:
            raise NotFound("Dictionary not found")
        return found

    @property
    def only(self) -> DictionaryInfo:
        """Its only dictionary. Raises `NotFound` if there are several."""
        if len(self.dictionaries) > 1:
            raise NotFound(f"the glossary has {len(self.dictionaries)} dictionaries. Must be, to be used here: 1")
        return self.dictionaries[0]


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
        self._num_deletions = 0
        try:
            self._database = _opened(path, folder)
        except (sqlite3.Error, OSError) as error:
            raise ValueError(f"{path or folder} cannot be used to store glossaries: {error}") from error
        self._ready: LRUCache[str, Glossary] = LRUCache(_READY_BYTES, lambda glossary: memory_of(glossary.entries))

    def create(self, name: str, dictionaries: Mapping[Pair, Mapping[str, str]]) -> GlossaryInfo:
        """Store a glossary with these dictionaries, all or none. Raises `InvalidRequest` if it or the store is full."""
        _check_name(name)
        _check_number(len(dictionaries))
        glossaries = {pair: Glossary(entries) for pair, entries in dictionaries.items()}
        glossary_id = str(uuid.uuid4())
        with self._used():
            row = (glossary_id, name, datetime.now(UTC).isoformat())
            self._database.execute("INSERT INTO multilingual VALUES (?, ?, ?)", row)
            for pair, glossary in glossaries.items():
                self._write(self._add(glossary_id, pair), glossary)
            self._check_size()
            return self.info(glossary_id)

    def all(self) -> list[GlossaryInfo]:
        """Return all glossaries without their entries, the oldest first."""
        with self._used():
            return _infos(self._database.execute(_SELECT, ("",)).fetchall())

    def info(self, glossary_id: str) -> GlossaryInfo:
        """Return one glossary without its entries. Raises `NotFound`."""
        with self._used():
            found = _infos(self._database.execute(_SELECT, (glossary_id,)).fetchall()) if glossary_id else []
        if not found:
            raise NotFound("Glossary not found")
        return found[0]

    def dictionary(self, dictionary_id: str) -> Glossary:
        """Return the entries of one dictionary. Raises `NotFound`."""
        with self._used():
            if dictionary_id in self._ready:
                return self._ready[dictionary_id]
            num_deletions = self._num_deletions
            rows = self._database.execute(
                "SELECT term, translation FROM entries WHERE glossary = ? ORDER BY place", (dictionary_id,)
            ).fetchall()
        if not rows:
            raise NotFound("Glossary not found")
        glossary = Glossary(dict(rows))
        self._keep(dictionary_id, glossary, num_deletions)
        return glossary

    def rename(self, glossary_id: str, name: str) -> None:
        """Give a glossary another name. Raises `NotFound` and `InvalidRequest`."""
        _check_name(name)
        with self._used():
            if not self._database.execute(
                "UPDATE multilingual SET name = ? WHERE id = ?", (name, glossary_id)
            ).rowcount:
                raise NotFound("Glossary not found")

    def put(self, glossary_id: str, pair: Pair, entries: Mapping[str, str], *, keeps: bool = False) -> DictionaryInfo:
        """Replace the entries of the dictionary of a pair, or add the dictionary. Raises `NotFound`, `InvalidRequest`.

        With `keeps`, it keeps other entries than those with the same terms.
        """
        with self._used():
            info = self.info(glossary_id)
            its_id = next((each.id for each in info.dictionaries if (each.source, each.target) == pair), None)
            kept = self.dictionary(its_id).entries if keeps and its_id is not None else {}
            glossary = Glossary({**kept, **entries})
            if its_id is None:
                _check_number(len(info.dictionaries) + 1)
                its_id = self._add(glossary_id, pair)
            self._write(its_id, glossary)
            self._check_size()
            return self.info(glossary_id).dictionary(pair)

    def delete(self, glossary_id: str) -> None:
        """Delete a glossary with all dictionaries. Raises `NotFound`."""
        with self._used():
            for dictionary in self.info(glossary_id).dictionaries:
                self._delete(dictionary.id)
            self._database.execute("DELETE FROM multilingual WHERE id = ?", (glossary_id,))

    def delete_dictionary(self, glossary_id: str, pair: Pair) -> None:
        """Delete the dictionary of a pair. Raises `NotFound`, and `InvalidRequest` for the last one."""
        with self._used():
            info = self.info(glossary_id)
            dictionary = info.dictionary(pair)
            if len(info.dictionaries) == 1:
                raise InvalidRequest("a glossary must have 1 dictionary or more; delete the glossary instead")
            self._delete(dictionary.id)

    def _add(self, glossary_id: str, pair: Pair) -> str:
        """Add an empty dictionary to a glossary, and return its id. Raises `InvalidRequest` if the store is full."""
        [[count]] = self._database.execute("SELECT count(*) FROM glossaries")
        if count >= MAX_GLOSSARIES:
            raise InvalidRequest(f"the store is full: {count} of {MAX_GLOSSARIES} glossaries; delete some")
        its_id = str(uuid.uuid4())
        for statement in (
            "INSERT INTO glossaries SELECT ?1, name, ?2, ?3, created FROM multilingual WHERE id = ?4",
            "INSERT INTO members SELECT ?4, ?1, coalesce(max(place), 0) + 1 FROM members WHERE glossary = ?4",
        ):
            self._database.execute(statement, (its_id, *pair, glossary_id))
        return its_id

    def _write(self, dictionary_id: str, glossary: Glossary) -> None:
        """Replace the entries of a dictionary."""
        self._forget(dictionary_id)
        self._database.execute("DELETE FROM entries WHERE glossary = ?", (dictionary_id,))
        # A stored term has one translation.
        rows = [(dictionary_id, place, *entry) for place, entry in enumerate(glossary.entries.items())]
        self._database.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)

    def _check_size(self) -> None:
        """Raise `InvalidRequest` if the store has more than its bytes; that undoes the transaction."""
        [[stored]] = self._database.execute(_SIZE).fetchall()
        if stored > self._max_bytes:
            raise InvalidRequest(
                f"the store is full: it would have {stored} of {self._max_bytes} bytes; delete some glossaries"
            )

    def _delete(self, dictionary_id: str) -> None:
        self._forget(dictionary_id)
        self._database.execute("DELETE FROM glossaries WHERE id = ?", (dictionary_id,))

    def _forget(self, dictionary_id: str) -> None:
        self._ready.pop(dictionary_id, None)
        self._num_deletions += 1

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
            finally:
                self._depth = 0

    def _forget_changes(self) -> None:
        """Forget what another process may have changed since."""
        [version] = self._database.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self._num_deletions += 1
            self._ready.clear()

    def _keep(self, glossary_id: str, glossary: Glossary, num_deletions: int) -> None:
        """Keep a glossary ready for use, unless it is larger than the limit, or may have been deleted meanwhile."""
        with self._lock:
            if num_deletions == self._num_deletions and memory_of(glossary.entries) <= _READY_BYTES:
                self._ready[glossary_id] = glossary


def _check_name(name: str) -> None:
    """Raise `InvalidRequest` for an invalid name of a glossary."""
    if not name.strip() or len(name) > _MAX_NAME_CHARACTERS:
        raise InvalidRequest(
            f"`name` must have 1 to {_MAX_NAME_CHARACTERS} characters, and not only spaces. Given: {len(name)}"
        )


def _check_number(number: int) -> None:
    """Raise `InvalidRequest` for a glossary of no or of too many dictionaries."""
    if not 1 <= number <= MAX_DICTIONARIES:
        raise InvalidRequest(f"a glossary must have 1 to {MAX_DICTIONARIES} dictionaries. Given: {number}")


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


def _infos(rows: Sequence[tuple[str, str, str, str, str, str, int]]) -> list[GlossaryInfo]:
    return [
        GlossaryInfo(
            glossary_id, name, datetime.fromisoformat(created), tuple(DictionaryInfo(*row[3:]) for row in its_rows)
        )
        for (glossary_id, name, created), its_rows in groupby(rows, lambda row: row[:3])
    ]
