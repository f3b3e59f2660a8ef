"""Store of glossaries: an SQLite file, or memory without one."""

import sqlite3
import threading
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cachetools import LRUCache

from server.interface.errors import InvalidRequest, NotFound
from server.text.glossary import Glossary

MAX_GLOSSARIES = 1000
_MAX_NAME_CHARACTERS = 1024
_MAX_READY = 32  # stored glossaries that are kept in memory, ready for use

_SCHEMA = """
CREATE TABLE IF NOT EXISTS glossaries (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, created TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
    glossary TEXT NOT NULL REFERENCES glossaries (id) ON DELETE CASCADE,
    place INTEGER NOT NULL, term TEXT NOT NULL, translation TEXT NOT NULL,
    PRIMARY KEY (glossary, place)
) WITHOUT ROWID;
"""
_SELECT = "SELECT id, name, source, target, created, (SELECT count(*) FROM entries WHERE glossary = id) FROM glossaries"


@dataclass(frozen=True, slots=True)
class GlossaryInfo:
    """A stored glossary without its entries."""

    id: str
    name: str
    source: str
    target: str
    created: datetime
    num_entries: int


class GlossaryStore:
    """Stores glossaries. Thread-safe; every method may block for a moment."""

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(":memory:" if path is None else path, check_same_thread=False)
            self._database.execute("PRAGMA foreign_keys = ON")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ValueError(f"{path} cannot be used to store glossaries: {error}") from error
        self._ready: LRUCache[str, Glossary] = LRUCache(_MAX_READY)

    def create(self, name: str, source: str, target: str, entries: Mapping[str, str]) -> GlossaryInfo:
        """Store a glossary. Raises `InvalidRequest` if it is invalid, or if the store is full."""
        if not name.strip() or len(name) > _MAX_NAME_CHARACTERS:
            raise InvalidRequest(
                f"`name` must have 1 to {_MAX_NAME_CHARACTERS} characters, and not only spaces. Given: {len(name)}"
            )
        glossary = Glossary(entries)
        info = GlossaryInfo(str(uuid.uuid4()), name, source, target, datetime.now(UTC), len(entries))
        with self._lock, self._database:
            [[count]] = self._database.execute("SELECT count(*) FROM glossaries")
            if count >= MAX_GLOSSARIES:
                raise InvalidRequest(f"the store is full: {count} of {MAX_GLOSSARIES} glossaries; delete some")
            self._database.execute(
                "INSERT INTO glossaries VALUES (?, ?, ?, ?, ?)",
                (info.id, name, source, target, info.created.isoformat()),
            )
            self._database.executemany(
                "INSERT INTO entries VALUES (?, ?, ?, ?)",
                [(info.id, place, *entry) for place, entry in enumerate(entries.items())],
            )
            self._ready[info.id] = glossary
        return info

    def all(self) -> list[GlossaryInfo]:
        """Return all glossaries, the oldest first."""
        with self._lock, closing(self._database.execute(f"{_SELECT} ORDER BY created, id")) as rows:
            return [_info(row) for row in rows]

    def info(self, glossary_id: str) -> GlossaryInfo:
        """Return one glossary without its entries. Raises `NotFound`."""
        with self._lock:
            row = self._database.execute(f"{_SELECT} WHERE id = ?", (glossary_id,)).fetchone()
        if row is None:
            raise NotFound("Glossary not found")
        return _info(row)

    def glossary(self, glossary_id: str) -> Glossary:
        """Return one glossary. Raises `NotFound`."""
        with self._lock:
            if glossary_id in self._ready:
                return self._ready[glossary_id]
            rows = self._database.execute(
                "SELECT term, translation FROM entries WHERE glossary = ? ORDER BY place", (glossary_id,)
            ).fetchall()
            if not rows:
                raise NotFound("Glossary not found")
            glossary = self._ready[glossary_id] = Glossary(dict(rows))
            return glossary

    def delete(self, glossary_id: str) -> None:
        """Delete one glossary. Raises `NotFound`."""
        with self._lock, self._database:
            self._ready.pop(glossary_id, None)
            if not self._database.execute("DELETE FROM glossaries WHERE id = ?", (glossary_id,)).rowcount:
                raise NotFound("Glossary not found")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()


def _info(row: tuple[str, str, str, str, str, int]) -> GlossaryInfo:
    glossary_id, name, source, target, created, num_entries = row
    return GlossaryInfo(glossary_id, name, source, target, datetime.fromisoformat(created), num_entries)
