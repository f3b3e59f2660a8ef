"""Store of translation memories: one SQLite file with its index, shared by servers, import processes and the command.

A look-up finds equal sentences by the hash of what is compared. Candidates for similar ones are in a full-text index
of words: a sentence of n words that differs in k of them still has n - k, two of its k + 2 rarest among them.
"""

import json
import re
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from server.interface.errors import InvalidRequest, NotFound, StorageFull, StoreBusy, means_storage_full
from server.memory.matching import EXACT, Folded, exchanged, fold, max_edits, normalized, number_of
from server.memory.matching import score as score_of
from server.text.language_tags import match_language
from server.text.readers.units import OBJECT
from server.translation.types import MemoryMatch

DEFAULT_THRESHOLD = 75
MIN_THRESHOLD = 50  # below, no words need be common; lower values count as this one
DEFAULT_MAX_SEGMENTS = 1_000_000
DEFAULT_MAX_BYTES = 1_000_000_000
MAX_NAME_CHARACTERS = 1024
MAX_SEGMENT_CHARACTERS = 10_000
EVERYONE = "*"  # in place of a key that a memory is shared with

_MAX_MEMORIES = 1000  # of one owner
_MAX_CANDIDATES = 200
_MAX_READ = 2000  # entries of the index, unless the rarest word has more: it takes about a millisecond
_MAX_FIRST = 2  # words of which a match must have one
_MAX_EQUAL = 20  # segments that differ in variables only, of which one must fit
_SAFE = ("synchronous = FULL", "cache_size = -4000", "wal_autocheckpoint = 1000")
_BULK = ("synchronous = NORMAL", "cache_size = -64000", "wal_autocheckpoint = 10000")
_KEPT_FREQUENCIES = 20_000
_PURGED = 4000  # segments at once, in some 50 ms
_PURGE_PAUSE_SECONDS = 0.02  # SQLite gives a lock to who asks for it, not to who waits
_BUSY_SECONDS = 10.0
_DEFAULTS_SECONDS = 1.0  # until a change of another process takes effect

_SCHEMA = """
CREATE TABLE IF NOT EXISTS memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, public TEXT NOT NULL UNIQUE, name TEXT NOT NULL, source TEXT NOT NULL,
    targets TEXT NOT NULL, owner TEXT NOT NULL, is_complete INTEGER NOT NULL DEFAULT 1,
    segments INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL, changed INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS defaults (  -- keys that use a memory for every request
    memory INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE, key TEXT NOT NULL, PRIMARY KEY (memory, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shares (
    memory INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE, key TEXT NOT NULL, PRIMARY KEY (memory, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS deleted_memories (id INTEGER PRIMARY KEY);  -- whose segments are still to be deleted
CREATE TABLE IF NOT EXISTS segments (
    id INTEGER PRIMARY KEY, memory INTEGER NOT NULL, fold INTEGER NOT NULL, key INTEGER NOT NULL,
    language TEXT NOT NULL, source TEXT NOT NULL, words TEXT NOT NULL, target TEXT NOT NULL, context TEXT,
    created INTEGER NOT NULL, changed INTEGER NOT NULL, author TEXT
);
CREATE INDEX IF NOT EXISTS segments_by_memory ON segments (memory);  -- in the order of their ids
CREATE UNIQUE INDEX IF NOT EXISTS segments_by_fold ON segments (memory, fold, key, language);
CREATE VIRTUAL TABLE IF NOT EXISTS word_index USING fts5 (
    words, content = 'segments', content_rowid = 'id', detail = 'none', columnsize = 0,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
);
CREATE VIRTUAL TABLE IF NOT EXISTS frequencies USING fts5vocab (word_index, row);
CREATE TRIGGER IF NOT EXISTS segment_deleted AFTER DELETE ON segments BEGIN
    INSERT INTO word_index (word_index, rowid, words) VALUES ('delete', old.id, old.words);
END;
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, operation TEXT NOT NULL, status TEXT NOT NULL, name TEXT NOT NULL,
    memory TEXT, secret TEXT NOT NULL, options TEXT NOT NULL DEFAULT '{}', position INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0, starts INTEGER NOT NULL DEFAULT 0, error TEXT,
    created INTEGER NOT NULL, changed INTEGER NOT NULL
);
"""
_BREAKS = re.compile(r"\s*[\r\n]\s*")
_READABLE = (
    "is_complete AND (owner IN ('', :viewer) OR EXISTS "
    "(SELECT 1 FROM shares WHERE memory = memories.id AND key IN (:viewer, '*')))"
)
_WRITABLE = (
    "is_complete AND (owner = :viewer OR EXISTS (SELECT 1 FROM shares WHERE memory = memories.id AND key = :viewer))"
)
_OWNED = "is_complete AND owner = :viewer"
_IS_DEFAULT = "EXISTS (SELECT 1 FROM defaults WHERE memory = memories.id AND key = :viewer)"
_MEMORY = f"id, public, name, source, targets, owner, {_IS_DEFAULT}, segments, created, changed"
_SEGMENT = "id, language, source, target, context, created, changed, author"
_BYTES = "length(CAST(source AS BLOB)) + length(CAST(target AS BLOB))"
_SIZE = f"SELECT coalesce(sum({_BYTES}), 0) FROM segments WHERE memory = ?"
_PUT = (
    "INSERT INTO segments (memory, fold, key, language, source, words, target, context, created, changed, author) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (memory, fold, key, language) DO UPDATE SET "
    "target = excluded.target, context = coalesce(excluded.context, context), changed = excluded.changed, "
    "author = excluded.author WHERE excluded.changed >= changed"
)


_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Quota:
    """What one owner may store; bytes are those of sources and targets."""

    max_segments: int = DEFAULT_MAX_SEGMENTS
    max_bytes: int = DEFAULT_MAX_BYTES


@dataclass(frozen=True, slots=True)
class Memory:
    """A translation memory without its segments. `number` is that in the file, `id` the public one."""

    number: int
    id: str
    name: str
    source: str
    targets: tuple[str, ...]
    owner: str
    is_default: bool
    num_segments: int
    created: datetime
    changed: datetime


@dataclass(frozen=True, slots=True)
class Pair:
    """A source sentence and its approved translation. `author` is the API key or the person that changed it last."""

    source: str
    language: str
    target: str
    context: str | None = None
    author: str | None = None
    created: datetime | None = None
    changed: datetime | None = None


@dataclass(frozen=True, slots=True)
class Segment(Pair):
    """A stored pair."""

    created: datetime = _EPOCH
    changed: datetime = _EPOCH
    id: int = 0


class MemoryStore:
    """Translation memories in a file. Thread-safe; methods block while they use the file.

    A `viewer` is the id of an API key, "" on a server without keys. It sees its own memories, those shared with it, and
    those of "". Methods raise `NotFound` for all others, `StorageFull` if the file cannot grow, and `StoreBusy` while
    another process has locked it for long; each change is made completely or not at all.
    """

    def __init__(self, path: Path, quota: Quota = Quota()) -> None:
        """Open the file, and create a missing one. Raises ValueError if it is damaged or cannot be used."""
        self.path = path
        self._quota = quota
        self._lock = threading.RLock()
        self._depth = 0
        self._readers = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._frequencies: LRUCache[str, int] = LRUCache(_KEPT_FREQUENCIES)
        self._frequency_lock = threading.Lock()
        self._defaults: dict[str, tuple[Memory, ...]] = {}  # by viewer
        self._defaults_until = 0.0
        try:
            self._database = self._connect()
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.executescript(_SCHEMA)
            [problem] = self._database.execute("PRAGMA quick_check(1)").fetchone()
            path.chmod(0o600)
        except (sqlite3.Error, OSError) as error:
            raise ValueError(f"{path} cannot be used to store translation memories: {error}") from error
        if problem != "ok":
            raise ValueError(f"{path} is damaged: {problem}; restore it from a copy of `kvasir memory backup`")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            for database in self._opened:
                database.close()

    # Memories

    def create(self, owner: str, name: str, source: str, targets: Sequence[str], *, is_complete: bool = True) -> Memory:
        """Create an empty memory. One that is not complete is not seen before `complete` is called."""
        if not name.strip() or len(name) > MAX_NAME_CHARACTERS:
            raise InvalidRequest(f"the name must have 1 to {MAX_NAME_CHARACTERS} characters. Given: {len(name)}")
        public, now = str(uuid.uuid4()), int(time.time())
        with self.transaction() as database:
            [count] = database.execute("SELECT count(*) FROM memories WHERE owner = ?", (owner,)).fetchone()
            if count >= _MAX_MEMORIES:
                raise InvalidRequest(f"there are {count} of {_MAX_MEMORIES} translation memories; delete some")
            row = database.execute(
                "INSERT INTO memories (public, name, source, targets, owner, is_complete, created, changed) "
                f"VALUES (:public, :name, :source, :targets, :viewer, :is_complete, :now, :now) RETURNING {_MEMORY}",
                {"public": public, "name": name, "source": source, "targets": json.dumps(targets), "viewer": owner,
                 "is_complete": is_complete, "now": now},
            ).fetchone()  # fmt: skip
        return _memory(row)

    def memories(self, viewer: str, offset: int, limit: int) -> tuple[list[Memory], int]:
        """Return the memories from `offset` on that a viewer sees, the oldest first, and the number of all."""
        database, values = self._reader, {"viewer": viewer, "offset": offset, "limit": limit}
        [total] = database.execute(f"SELECT count(*) FROM memories WHERE {_READABLE}", values).fetchone()
        rows = database.execute(
            f"SELECT {_MEMORY} FROM memories WHERE {_READABLE} ORDER BY id LIMIT :limit OFFSET :offset", values
        )
        return [_memory(row) for row in rows], total

    def memory(self, viewer: str, public: str) -> Memory:
        """Return a memory that a viewer sees."""
        return self._found(self._reader, _READABLE, viewer, public)

    def change(
        self,
        viewer: str,
        public: str,
        *,
        name: str | None = None,
        is_default: bool | None = None,
        shared_with: Sequence[str] | None = None,
    ) -> Memory:
        """Rename or share a memory of this owner, or use any memory for all requests of this viewer."""
        with self.transaction() as database:
            owns = name is not None or shared_with is not None
            memory = self._found(database, _OWNED if owns else _READABLE, viewer, public)
            if name is not None:
                if not 0 < len(name.strip()) <= len(name) <= MAX_NAME_CHARACTERS:
                    raise InvalidRequest(
                        f"the name must have 1 to {MAX_NAME_CHARACTERS} characters. Given: {len(name)}"
                    )
                database.execute("UPDATE memories SET name = ? WHERE id = ?", (name, memory.number))
            if shared_with is not None:
                database.execute("DELETE FROM shares WHERE memory = ?", (memory.number,))
                rows = [(memory.number, key) for key in dict.fromkeys(shared_with)]
                database.executemany("INSERT INTO shares VALUES (?, ?)", rows)
            if is_default is not None:
                add_or_remove = "INSERT OR IGNORE INTO defaults VALUES (?, ?)"
                if not is_default:
                    add_or_remove = "DELETE FROM defaults WHERE memory = ? AND key = ?"
                database.execute(add_or_remove, (memory.number, viewer))
            self._defaults_until = 0.0
            return self._found(database, _READABLE, viewer, public)

    def delete(self, viewer: str, public: str) -> None:
        """Delete a memory of this owner. It is gone at once; `purge` frees its space."""
        with self.transaction() as database:
            memory = self._found(database, _OWNED, viewer, public)
            self.discard(memory.id)
            self._defaults_until = 0.0

    # Segments

    def segments(
        self, memory: Memory, after: int, limit: int, text: str = "", *, is_case_sensitive: bool = False
    ) -> list[Segment]:
        """Return the segments behind this id, those with `text` in source or target only."""
        condition = (
            ""
            if not text
            else (
                " AND (instr(source, :text) OR instr(target, :text))"
                if is_case_sensitive
                else " AND (source LIKE :like ESCAPE '\\' OR target LIKE :like ESCAPE '\\')"
            )
        )
        escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        values = {"memory": memory.number, "after": after, "limit": limit, "text": text, "like": f"%{escaped}%"}
        rows = self._reader.execute(
            f"SELECT {_SEGMENT} FROM segments INDEXED BY segments_by_memory "
            f"WHERE memory = :memory AND id > :after{condition} "
            "ORDER BY id LIMIT :limit",
            values,
        )
        return [_segment(row) for row in rows]

    def put(self, viewer: str, public: str, pairs: Sequence[Pair], author: str | None = None) -> list[Segment]:
        """Add pairs, or replace the translations of those that are there. Raises `InvalidRequest` beyond a quota."""
        for pair in pairs:
            if (problem := problem_of(pair)) is not None:
                raise InvalidRequest(problem)
        with self.transaction() as database:
            memory = self._found(database, _WRITABLE, viewer, public)
            self.add(memory, pairs, author or viewer or None)
            found = (_key(memory, pair) for pair in pairs)
            return [
                _segment(
                    database.execute(
                        f"SELECT {_SEGMENT} FROM segments WHERE memory = ? AND fold = ? AND key = ? AND language = ?",
                        key,
                    ).fetchone()
                )
                for key in found
            ]

    def delete_segment(self, viewer: str, public: str, segment: int) -> None:
        """Delete a segment."""
        with self.transaction() as database:
            memory = self._found(database, _WRITABLE, viewer, public)
            row = database.execute(
                f"DELETE FROM segments WHERE memory = ? AND id = ? RETURNING {_BYTES}",
                (memory.number, segment),
            ).fetchone()
            if row is None:
                raise NotFound("Segment not found")
            self._count(database, memory, -1, -row[0], ())

    def add(self, memory: Memory, pairs: Iterable[Pair], author: str | None = None) -> None:
        """Add or replace valid pairs within a transaction of the caller. Raises `InvalidRequest` beyond a quota.

        An older pair replaces no newer one. `author` has changed the pairs that do not name theirs.
        """
        now, database = int(time.time()), self._database
        rows = []
        languages: dict[str, None] = {}
        num_bytes = 0
        for pair in pairs:
            folded = fold(pair.source)
            begun, last = (
                now if time is None else min(int(time.timestamp()), now) for time in (pair.created, pair.changed)
            )
            rows.append(
                (memory.number, number_of(folded.text), number_of(normalized(pair.source)), pair.language, pair.source,
                 folded.words, pair.target, pair.context, begun, last, pair.author or author)
            )  # fmt: skip
            languages[pair.language] = None
            num_bytes += len(pair.source.encode()) + len(pair.target.encode())
        [last] = database.execute("SELECT coalesce(max(id), 0) FROM segments").fetchone()
        database.executemany(_PUT, rows)
        # Ids are given in their order. All at once takes a third of the time of a trigger for each.
        added = database.execute(
            "INSERT INTO word_index (rowid, words) SELECT id, words FROM segments WHERE id > ?", (last,)
        ).rowcount
        self._count(database, memory, added, num_bytes, languages)
        totals = "SELECT sum(segments), sum(bytes) FROM memories WHERE owner = ?"
        segments, size = database.execute(totals, (memory.owner,)).fetchone()
        if size > self._quota.max_bytes:  # texts that were replaced are still counted
            database.execute(f"UPDATE memories SET bytes = ({_SIZE}) WHERE id = ?", (memory.number, memory.number))
            segments, size = database.execute(totals, (memory.owner,)).fetchone()
        if segments > self._quota.max_segments or size > self._quota.max_bytes:
            raise InvalidRequest(
                f"translation memories may have {self._quota.max_segments} segments and {self._quota.max_bytes} bytes "
                f"of text for each API key; this change makes {segments} and {size}"
            )

    def write_in_bulk(self, *, is_on: bool) -> None:
        """Let the system decide when changes reach the disk; all of them are there after the next change without it."""
        for pragma in _BULK if is_on else _SAFE:
            self._database.execute(f"PRAGMA {pragma}")

    def complete(self, memory: Memory) -> None:
        """Let viewers see a memory, within a transaction of the caller."""
        self._database.execute("UPDATE memories SET is_complete = 1 WHERE id = ?", (memory.number,))

    def optimize(self) -> None:
        """Merge the parts of the index, which halves the time of a look-up after many changes."""
        with self.transaction() as database:
            database.execute("INSERT INTO word_index (word_index) VALUES ('optimize')")

    def incomplete(self, public: str) -> Memory:
        """Return a memory whether or not it is complete, within a transaction of the caller."""
        return self._found(self._database, "1", "", public)

    def discard(self, public: str) -> None:
        """Delete a memory, whether or not it is complete, within a transaction of the caller."""
        values = (public,)
        self._database.execute("INSERT INTO deleted_memories SELECT id FROM memories WHERE public = ?", values)
        self._database.execute("DELETE FROM memories WHERE public = ?", values)

    @property
    def has_deleted(self) -> bool:
        """Whether `purge` has something to do."""
        return self._reader.execute("SELECT 1 FROM deleted_memories").fetchone() is not None

    def purge(self) -> None:
        """Delete the segments of deleted memories, some at a time: others can write in between."""
        self.write_in_bulk(is_on=True)
        while (row := self._reader.execute("SELECT id FROM deleted_memories LIMIT 1").fetchone()) is not None:
            with self.transaction() as database:
                chosen = "SELECT id FROM segments INDEXED BY segments_by_memory WHERE memory = ? LIMIT ?"
                number = database.execute(f"DELETE FROM segments WHERE id IN ({chosen})", (*row, _PURGED)).rowcount
                if number < _PURGED:
                    database.execute("DELETE FROM deleted_memories WHERE id = ?", row)
            time.sleep(_PURGE_PAUSE_SECONDS)
        self.write_in_bulk(is_on=False)

    # Look-up

    def chosen(self, viewer: str, public: str | None) -> tuple[Memory, ...]:
        """Return the memory that a request names, or all that this viewer uses by default."""
        if public is not None:
            return (self.memory(viewer, public),)
        if time.monotonic() >= self._defaults_until:
            self._defaults = {}
            self._defaults_until = time.monotonic() + _DEFAULTS_SECONDS
        if (found := self._defaults.get(viewer)) is None:
            query = f"SELECT {_MEMORY} FROM memories WHERE {_IS_DEFAULT} AND {_READABLE}"
            found = self._defaults[viewer] = tuple(map(_memory, self._reader.execute(query, {"viewer": viewer})))
        return found

    def find(
        self, memories: Sequence[Memory], text: str, source: str, target: str, threshold: int = DEFAULT_THRESHOLD
    ) -> MemoryMatch | None:
        """Return the best match for a sentence among the memories for these languages; None below the threshold."""
        folded = fold(text)
        best: MemoryMatch | None = None
        for memory in memories:
            if match_language(memory.source, [source]) is None:
                continue
            language = match_language(target, memory.targets)
            if language is None:
                continue
            found = self._equal(memory, folded, normalized(text), language, source, target)
            if found is None and threshold < EXACT:
                least = max(threshold, MIN_THRESHOLD, 0 if best is None else best.score)
                found = self._similar(memory, folded, language, least)
            if found is not None and (best is None or found.score > best.score):
                best = found
            if best is not None and best.is_exact:
                break
        if best is None:
            return None
        target = best.target.strip()
        return replace(best, target=target if "\n" in text else _BREAKS.sub(" ", target))

    def _equal(
        self, memory: Memory, folded: Folded, text: str, language: str, source_language: str, target_language: str
    ) -> MemoryMatch | None:
        rows = self._reader.execute(
            "SELECT id, source, target FROM segments WHERE memory = ? AND fold = ? AND language = ? "
            "ORDER BY key != ?, changed DESC LIMIT ?",
            (memory.number, number_of(folded.text), language, number_of(text), _MAX_EQUAL),
        ).fetchall()
        for segment, source, target in rows:
            stored = fold(source)
            if stored.text == folded.text:  # not only its hash
                written = exchanged(folded, stored, target, source_language, target_language)
                if written is not None:
                    return MemoryMatch(str(segment), EXACT, written, source)
        return None

    def _similar(self, memory: Memory, folded: Folded, language: str, threshold: int) -> MemoryMatch | None:
        words = folded.words.split(" ")
        query = self._query(words, threshold)
        if query is None:
            return None
        rows = self._reader.execute(
            "SELECT segments.id, segments.words FROM word_index CROSS JOIN segments ON segments.id = word_index.rowid "
            "WHERE word_index MATCH ? AND +memory = ? AND +language = ? LIMIT ?",
            (query, memory.number, language, _MAX_CANDIDATES),
        )
        best, segment = threshold - 1, None
        for number, stored in rows:
            score = score_of(words, stored.split(" "), best + 1)
            if score > best:
                best, segment = score, number
        if segment is None:
            return None
        source, target = self._reader.execute("SELECT source, target FROM segments WHERE id = ?", (segment,)).fetchone()
        return MemoryMatch(str(segment), best, target, source)

    def _query(self, words: Sequence[str], threshold: int) -> str | None:
        """Return a query for the sentences that may reach the threshold; None if there are none."""
        frequencies = {word: self._frequency(word) for word in words if word != OBJECT}
        edits = max_edits(len(words), threshold)
        rarest = sorted(frequencies, key=frequencies.__getitem__)[: edits + 2]
        has_two = len(rarest) == edits + 2  # two of them are in each match, one of them in any case
        known = [word for word in rarest if frequencies[word]]
        found: list[str] = []
        num_read = 0
        for index, word in enumerate(known, 1):
            num_read += frequencies[word]
            if found and (num_read > _MAX_READ or index > _MAX_FIRST):
                break  # missed: sentences without any of these rare words
            others = " OR ".join(map(_quoted, known[index:]))
            if has_two and others:
                found.append(f"({_quoted(word)} AND ({others}))")
            elif not has_two:
                found.append(_quoted(word))
        return " OR ".join(found) or None

    def _frequency(self, word: str) -> int:
        """Return in how many segments of all memories a word was when it was last counted."""
        with self._frequency_lock:
            if (found := self._frequencies.get(word)) is not None:
                return found
        row = self._reader.execute("SELECT doc FROM frequencies WHERE term = ?", (word,)).fetchone()
        count = 0 if row is None else int(row[0])
        if count:  # one that comes later must be found
            with self._frequency_lock:
                self._frequencies[word] = count
        return count

    # Transactions

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the database in a transaction, the outer one if there is one: all of it is written, or nothing."""
        with self._lock:
            if self._depth:
                yield self._database
                return
            self._depth = 1
            try:
                self._database.execute("BEGIN IMMEDIATE")
                try:
                    yield self._database
                    self._database.execute("COMMIT")
                except BaseException:
                    if self._database.in_transaction:
                        self._database.execute("ROLLBACK")
                    raise
            except sqlite3.OperationalError as error:
                if means_storage_full(error):
                    raise StorageFull("the server has no space left for translation memories") from error
                raise StoreBusy(f"the file of translation memories cannot be used now: {error}; retry later") from error
            finally:
                self._depth = 0

    @property
    def reader(self) -> sqlite3.Connection:
        """A connection of this thread that sees what was committed; long readings of it delay no change."""
        return self._reader

    @property
    def _reader(self) -> sqlite3.Connection:
        database: sqlite3.Connection | None = getattr(self._readers, "database", None)
        if database is None:
            database = self._readers.database = self._connect()
        return database

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA foreign_keys = ON")
        for pragma in _SAFE:
            database.execute(f"PRAGMA {pragma}")
        with self._lock:
            self._opened.append(database)
        return database

    def _found(self, database: sqlite3.Connection, condition: str, viewer: str, public: str) -> Memory:
        row = database.execute(
            f"SELECT {_MEMORY} FROM memories WHERE public = :public AND {condition}",
            {"public": public, "viewer": viewer},
        ).fetchone()
        if row is None:
            raise NotFound("Translation memory not found")
        return _memory(row)

    def _count(
        self, database: sqlite3.Connection, memory: Memory, segments: int, num_bytes: int, languages: Iterable[str]
    ) -> None:
        [targets] = database.execute("SELECT targets FROM memories WHERE id = ?", (memory.number,)).fetchone()
        targets = json.dumps(list(dict.fromkeys((*json.loads(targets), *languages))))
        database.execute(
            "UPDATE memories SET segments = segments + ?, bytes = bytes + ?, targets = ?, changed = ? WHERE id = ?",
            (segments, num_bytes, targets, int(time.time()), memory.number),
        )
        self._defaults_until = 0.0


def problem_of(pair: Pair) -> str | None:
    """Return why a pair cannot be stored; None if it can."""
    if not any(map(str.isalpha, pair.source)) or not pair.target.strip():
        return "a segment must have words in its source, and a target"
    if max(len(pair.source), len(pair.target)) > MAX_SEGMENT_CHARACTERS:
        return f"a segment must have at most {MAX_SEGMENT_CHARACTERS} characters"
    return None


def backup(path: Path, target: Path) -> None:
    """Copy the file of a running server. Raises ValueError if that is impossible."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        if target.exists() and target.samefile(path):
            raise ValueError(f"{target} is the file itself; name another one")
        unfinished.unlink(missing_ok=True)
        unfinished.touch(0o600)
        with (
            closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(unfinished)) as copy,
        ):
            source.backup(copy)
        unfinished.replace(target)
    except (sqlite3.Error, OSError) as error:
        raise ValueError(f"{path} cannot be copied to {target}: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _key(memory: Memory, pair: Pair) -> tuple[int, int, int, str]:
    return memory.number, number_of(fold(pair.source).text), number_of(normalized(pair.source)), pair.language


def _quoted(word: str) -> str:
    return '"' + word.replace('"', "") + '"'


def _memory(row: Any) -> Memory:  # noqa: ANN401 - the columns of `_MEMORY`
    number, public, name, source, targets, owner, is_default, segments, created, changed = row
    begun, last = (datetime.fromtimestamp(each, UTC) for each in (created, changed))
    languages = tuple(json.loads(targets))
    return Memory(number, public, name, source, languages, owner, bool(is_default), segments, begun, last)


def _segment(row: Any) -> Segment:  # noqa: ANN401 - the columns of `_SEGMENT`
    number, language, source, target, context, created, changed, author = row
    begun, last = (datetime.fromtimestamp(each, UTC) for each in (created, changed))
    return Segment(source, language, target, context, author, begun, last, number)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A look-up in chosen memories, for the pipeline."""

    store: MemoryStore
    memories: tuple[Memory, ...]
    threshold: int = DEFAULT_THRESHOLD

    def find(self, text: str, source: str, target: str, *, is_sentence: bool = True) -> MemoryMatch | None:
        """Return the best match for a text between these languages; an exact one if it is not a sentence."""
        return self.store.find(self.memories, text, source, target, self.threshold if is_sentence else EXACT)
