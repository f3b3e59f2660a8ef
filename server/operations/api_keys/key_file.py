"""API keys in an SQLite file: created, changed and revoked by `kvasir keys`, read by servers while they run.

A key is `kvasir-ID-SECRET`. The file has the SHA-256 of the secret only. A plain hash is enough because the secret has
256 random bits: there is nothing to guess, which slow password hashes are made against.
"""

import hashlib
import hmac
import re
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

_PREFIX = "kvasir"
_ID_BYTES, _SECRET_BYTES = 4, 32
_KEY_START = f"{_PREFIX}-"
_KEY = re.compile(rf"({_PREFIX}-[0-9a-f]{{{2 * _ID_BYTES}}}-)[\w-]{{16,}}", re.ASCII)
_MAX_NAME_CHARACTERS = 200
_BUSY_SECONDS = 2.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, secret_sha256 TEXT NOT NULL, created TEXT NOT NULL,
    expires TEXT, revoked TEXT, requests_per_minute INTEGER, characters_per_day INTEGER,
    waiting_sentences INTEGER, documents INTEGER, join_lines INTEGER
);
CREATE TABLE IF NOT EXISTS usage (
    key TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE, day TEXT NOT NULL,
    requests INTEGER NOT NULL, characters INTEGER NOT NULL, PRIMARY KEY (key, day)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Limits of one key. None means unlimited. A day begins at 0:00 UTC.

    With `join_lines` (1, or None), the texts of its requests are lines of one text, unless a request tells otherwise.
    """

    requests_per_minute: int | None = None
    characters_per_day: int | None = None
    waiting_sentences: int | None = None
    documents: int | None = None
    join_lines: int | None = None


LIMITS = tuple(field.name for field in fields(KeyLimits))
_SELECT = (  # by name: a file of a later version has more columns
    "SELECT id, name, secret_sha256, created, expires, revoked, requests_per_minute, characters_per_day, "
    "waiting_sentences, documents, join_lines FROM keys ORDER BY rowid"
)


class KeyFileError(ValueError):
    """The file of API keys cannot be used: missing, locked, damaged, or not such a file."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret. `secret_sha256` is hexadecimal."""

    id: str
    name: str
    secret_sha256: str
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    limits: KeyLimits

    def is_valid(self, now: datetime) -> bool:
        """Return whether the key is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def has_secret(self, secret: str) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest(_digest(secret), self.secret_sha256)


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and characters of a key. Characters count when a translation is accepted, and not if it fails."""

    requests: int = 0
    characters: int = 0

    def __add__(self, other: Self) -> Self:
        """Return the sum."""
        return replace(self, requests=self.requests + other.requests, characters=self.characters + other.characters)


class KeyFile:
    """The SQLite file. Several processes may use it at once; every method may block for two seconds.

    Methods raise `KeyFileError` if the file is damaged, or if another process locks it for longer.
    """

    def __init__(self, path: Path, *, may_create: bool = True) -> None:
        """Open the file; a missing one is created, if it may be."""
        self._path = path
        with self._usable():
            if not may_create:
                path.stat()
            self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
        try:
            with self._usable():
                self._open()
        except KeyFileError:
            self._database.close()
            raise

    def _open(self) -> None:
        # A log next to the file (WAL) would be applied to any file that is renamed to this name later. While processes
        # of an earlier version use the file, its mode stays.
        with suppress(sqlite3.OperationalError):
            self._database.execute("PRAGMA journal_mode = DELETE")
        self._database.execute("PRAGMA foreign_keys = ON")
        self._database.executescript(_SCHEMA)
        present = {row[1] for row in self._database.execute("PRAGMA table_info(keys)")}
        for column in ("waiting_sentences", "documents", "join_lines"):
            if column not in present:  # a file of an earlier version
                self._database.execute(f"ALTER TABLE keys ADD COLUMN {column} INTEGER")
        with suppress(OSError):  # of another user, or on a read-only file system
            self._path.chmod(0o600)

    def add(self, name: str, limits: KeyLimits, expires: datetime | None = None) -> tuple[ApiKey, str]:
        """Create a key. Return it with its text, which cannot be had again. Raises ValueError for an invalid name."""
        if not name.strip() or len(name) > _MAX_NAME_CHARACTERS or not name.isprintable():
            raise ValueError(f"the name of a key must have 1 to {_MAX_NAME_CHARACTERS} printable characters")
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        key = ApiKey(secrets.token_hex(_ID_BYTES), name, _digest(secret), _now(), expires, None, limits)
        until = None if expires is None else expires.isoformat()
        with self._transaction():
            self._database.execute(
                "INSERT INTO keys (id, name, secret_sha256, created, expires, requests_per_minute, characters_per_day, "
                "waiting_sentences, documents, join_lines) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (key.id, name, key.secret_sha256, key.created.isoformat(), until, *astuple(limits)),
            )
        return key, f"{_PREFIX}-{key.id}-{secret}"

    def all(self) -> dict[str, ApiKey]:
        """Return all keys by their ids, the oldest first, revoked ones included."""
        with self._usable():
            rows = self._database.execute(_SELECT).fetchall()
            return {row[0]: _key(row) for row in rows}

    def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key for good. Raises ValueError if it does not exist."""
        with self._transaction():
            self._database.execute(
                "UPDATE keys SET revoked = coalesce(revoked, ?) WHERE id = ?", (_now().isoformat(), key_id)
            )
        return self._find(key_id)

    def limit(self, key_id: str, changes: Mapping[str, int | None]) -> ApiKey:
        """Change some limits of a key. Raises ValueError if it does not exist."""
        with self._transaction():
            self._database.execute("BEGIN IMMEDIATE")  # before reading: two changes at once are both kept
            if (key := self.all().get(key_id)) is not None:
                self._database.execute(
                    "UPDATE keys SET requests_per_minute = ?, characters_per_day = ?, waiting_sentences = ?, "
                    "documents = ?, join_lines = ? WHERE id = ?",
                    (*astuple(replace(key.limits, **changes)), key_id),
                )
        return self._find(key_id)

    def usage(self, day: str | None = None) -> dict[str, Usage]:
        """Return the usage of each key on a day (YYYY-MM-DD), or in all."""
        with self._usable():
            rows = self._database.execute(
                "SELECT key, sum(requests), sum(characters) FROM usage WHERE ?1 IS NULL OR day = ?1 GROUP BY key",
                (day,),
            )
            return {key: Usage(int(requests), int(characters)) for key, requests, characters in rows}

    def record(self, usage: Mapping[str, Mapping[str, Usage]], day: str) -> dict[str, Usage]:
        """Add usage by day and key, all or none of it, and return that of `day` with it, in one transaction.

        Keys that were deleted meanwhile are left out.
        """
        rows = [
            (each_day, each.requests, each.characters, key)
            for each_day, usage_of_day in usage.items()
            for key, each in usage_of_day.items()
        ]
        with self._transaction():
            self._database.executemany(
                "INSERT INTO usage SELECT id, ?, ?, ? FROM keys WHERE id = ? ON CONFLICT DO UPDATE SET "
                "requests = requests + excluded.requests, characters = characters + excluded.characters",
                rows,
            )
            return self.usage(day)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
            if isinstance(error, KeyFileError):
                raise
            raise KeyFileError(f"{self._path} cannot be used as a file of API keys: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all or nothing."""
        with self._usable(), self._database:
            yield

    def _find(self, key_id: str) -> ApiKey:
        key = self.all().get(key_id)
        if key is None:
            raise ValueError(f"no key has the id {key_id}; `kvasir keys list` shows the ids")
        return key


def parts_of(text: str) -> tuple[str, str] | None:
    """Return id and secret of a key's text, or None if it has another form."""
    prefix, _, rest = text.strip().partition("-")
    key_id, _, secret = rest.partition("-")
    return (key_id, secret) if prefix == _PREFIX and secret else None


def without_secrets(text: str) -> str:
    """Replace the secrets of keys in a text by dots: a client may send its key where none belongs."""
    return _KEY.sub(r"\1...", text) if _KEY_START in text else text  # log lines have the name "kvasir"


def _key(row: tuple[str, str, str, str, str | None, str | None, *tuple[int | None, ...]]) -> ApiKey:
    """Return the key of a row. Raises ValueError or TypeError for values that are none: SQLite stores any."""
    key_id, name, digest, created, expires, revoked, *limits = row
    return ApiKey(
        key_id,
        name,
        digest,
        datetime.fromisoformat(created),
        None if expires is None else datetime.fromisoformat(expires),
        None if revoked is None else datetime.fromisoformat(revoked),
        KeyLimits(*(None if limit is None else int(limit) for limit in limits)),
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
