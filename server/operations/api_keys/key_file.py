"""API keys in an SQLite file: created, changed and revoked by `kvasir keys`, read by servers while they run.

A key is `kvasir-ID-SECRET`. The file has the SHA-256 of the secret only. A plain hash is enough because the secret has
256 random bits: there is nothing to guess, which slow password hashes are made against.
"""

import hashlib
import hmac
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

_PREFIX = "kvasir"
_ID_BYTES, _SECRET_BYTES = 4, 32
_MAX_NAME_CHARACTERS = 200
_BUSY_SECONDS = 0.5

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, secret_sha256 TEXT NOT NULL, created TEXT NOT NULL,
    expires TEXT, revoked TEXT, requests_per_minute INTEGER, characters_per_day INTEGER,
    waiting_sentences INTEGER, documents INTEGER
);
CREATE TABLE IF NOT EXISTS usage (
    key TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE, day TEXT NOT NULL,
    requests INTEGER NOT NULL, characters INTEGER NOT NULL, PRIMARY KEY (key, day)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Limits of one key. None is no limit. A day begins at 0:00 UTC."""

    requests_per_minute: int | None = None
    characters_per_day: int | None = None
    waiting_sentences: int | None = None
    documents: int | None = None


LIMITS = tuple(field.name for field in fields(KeyLimits))


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
    """The SQLite file. Several processes may use it at once; every method may block for half a second.

    Methods raise `sqlite3.OperationalError` if another process locks the file for longer.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, and create it if it is missing. Raises ValueError if it cannot be used."""
        try:
            self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
            # Readers and one writer do not wait for each other.
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA foreign_keys = ON")
            self._database.executescript(_SCHEMA)
            present = {row[1] for row in self._database.execute("PRAGMA table_info(keys)")}
            for column in ("waiting_sentences", "documents"):
                if column not in present:  # a file of an earlier version
                    self._database.execute(f"ALTER TABLE keys ADD COLUMN {column} INTEGER")
            path.chmod(0o600)
        except (sqlite3.Error, OSError) as error:
            raise ValueError(f"{path} cannot be used as a file of API keys: {error}") from error

    def add(self, name: str, limits: KeyLimits, expires: datetime | None = None) -> tuple[ApiKey, str]:
        """Create a key. Return it with its text, which cannot be had again. Raises ValueError for an invalid name."""
        if not name.strip() or len(name) > _MAX_NAME_CHARACTERS or not name.isprintable():
            raise ValueError(f"the name of a key must have 1 to {_MAX_NAME_CHARACTERS} printable characters")
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        key = ApiKey(secrets.token_hex(_ID_BYTES), name, _digest(secret), _now(), expires, None, limits)
        with self._database:
            self._database.execute(
                "INSERT INTO keys VALUES (?, ?, ?, ?, ?, NULL, ?, ?, ?, ?)",
                (
                    key.id,
                    name,
                    key.secret_sha256,
                    key.created.isoformat(),
                    None if expires is None else expires.isoformat(),
                    *astuple(limits),
                ),
            )
        return key, f"{_PREFIX}-{key.id}-{secret}"

    def all(self) -> dict[str, ApiKey]:
        """Return all keys by their ids, the oldest first, revoked ones included."""
        rows = self._database.execute("SELECT * FROM keys ORDER BY rowid").fetchall()
        return {row[0]: _key(row) for row in rows}

    def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key for good. Raises ValueError if it does not exist."""
        with self._database:
            self._database.execute(
                "UPDATE keys SET revoked = coalesce(revoked, ?) WHERE id = ?", (_now().isoformat(), key_id)
            )
        return self._find(key_id)

    def limit(self, key_id: str, changes: Mapping[str, int | None]) -> ApiKey:
        """Change some limits of a key. Raises ValueError if it does not exist."""
        limits = replace(self._find(key_id).limits, **changes)
        with self._database:
            self._database.execute(
                "UPDATE keys SET requests_per_minute = ?, characters_per_day = ?, waiting_sentences = ?, documents = ? "
                "WHERE id = ?",
                (*astuple(limits), key_id),
            )
        return self._find(key_id)

    def version(self) -> int:
        """Return a number that differs as soon as another connection has changed the file."""
        [version] = self._database.execute("PRAGMA data_version").fetchone()
        return int(version)

    def usage(self, day: str | None = None) -> dict[str, Usage]:
        """Return the usage of each key on a day (YYYY-MM-DD), or in all."""
        rows = self._database.execute(
            "SELECT key, sum(requests), sum(characters) FROM usage WHERE ?1 IS NULL OR day = ?1 GROUP BY key", (day,)
        )
        return {key: Usage(requests, characters) for key, requests, characters in rows}

    def record(self, day: str, usage: Mapping[str, Usage]) -> None:
        """Add usage to that of a day. Keys that were deleted meanwhile are left out."""
        with self._database:
            self._database.executemany(
                "INSERT INTO usage SELECT id, ?, ?, ? FROM keys WHERE id = ? ON CONFLICT DO UPDATE SET "
                "requests = requests + excluded.requests, characters = characters + excluded.characters",
                [(day, each.requests, each.characters, key) for key, each in usage.items()],
            )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

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


def _key(row: tuple[str, str, str, str, str | None, str | None, *tuple[int | None, ...]]) -> ApiKey:
    key_id, name, digest, created, expires, revoked, *limits = row
    return ApiKey(
        key_id,
        name,
        digest,
        datetime.fromisoformat(created),
        None if expires is None else datetime.fromisoformat(expires),
        None if revoked is None else datetime.fromisoformat(revoked),
        KeyLimits(*limits),
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
