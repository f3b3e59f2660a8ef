"""Check of API keys, their limits, and the count of their usage, in a running server."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from server.interface.errors import InvalidApiKey, QuotaExceeded, RateLimited, TextTooLong
from server.operations.api_keys.key_file import ApiKey, KeyFile, KeyFileError, Usage, parts_of

if TYPE_CHECKING:
    from limits.strategies import MovingWindowRateLimiter

_log = logging.getLogger("kvasir")

_FILE_SECONDS = 1.0  # until a change of the file takes effect, and until usage is in it
_SETTLED_NANOSECONDS = 2_000_000_000
_CLOCK_STEP_SECONDS = 1.0  # more means that the clock was set, not adjusted

_UsageByDay = dict[str, dict[str, Usage]]  # by day and key


@dataclass(frozen=True, slots=True)
class Charge:
    """Characters that a key was charged, and the day (YYYY-MM-DD) whose quota has them."""

    key: ApiKey
    day: str
    num_characters: int


def _limiter() -> "MovingWindowRateLimiter":
    # Imported where there are keys: the package brings the clients of a dozen databases.
    from limits.storage import MemoryStorage
    from limits.strategies import MovingWindowRateLimiter

    return MovingWindowRateLimiter(MemoryStorage())


class KeyGate:
    """Keys of one server. The event loop's thread uses it, which never waits for the file.

    `run` keeps the keys and the file equal, in another thread. While the file cannot be used, keys and limits stay as
    they were, and usage is kept.
    """

    def __init__(self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Raises `KeyFileError` if the file cannot be used."""
        self._path = path
        self._clock = clock
        self._file_lock = Lock()  # held while the file is used
        self._stamp: tuple[int, ...] = ()  # of the file that has been read
        self._limiter = _limiter()  # by the wall clock
        self._clock_offset = time.time() - time.monotonic()
        self._usage_lock = Lock()  # of the attributes below, held for a moment
        self._stored_day, self._stored = "", dict[str, Usage]()
        self._in_writing: _UsageByDay = {}
        self._unstored: _UsageByDay = {}
        self._keys: dict[str, ApiKey] = {}
        self._exchange(KeyFile(path))

    async def run(self) -> None:
        """Synchronize with the file every second, until cancelled."""
        problem = ""
        while True:
            await asyncio.sleep(_FILE_SECONDS)
            try:
                await asyncio.to_thread(self.synchronize)
            except KeyFileError as error:
                if str(error) != problem:
                    problem = str(error)
                    _log.error("file of API keys cannot be used; its keys stay as they were", extra={"cause": problem})
            else:
                if problem:
                    _log.info("file of API keys is usable again", extra={"file": str(self._path)})
                problem = ""

    def synchronize(self) -> None:
        """Write the usage since the last call to the file, and read what other processes have changed.

        Blocks, and may run in any thread. Raises `KeyFileError` if the file cannot be used; the next call tries again.
        """
        with self._file_lock:
            stamp = self._stamp_on_disk()
            # A second write within a tick of the clock of files leaves the stamp as it is.
            is_settled = stamp == self._stamp and time.time_ns() - stamp[-1] > _SETTLED_NANOSECONDS
            if not is_settled or self._unstored or self._today() != self._stored_day:
                self._exchange(KeyFile(self._path, may_create=False))
                self._stamp = stamp

    def _stamp_on_disk(self) -> tuple[int, ...]:
        """Return what differs after each write to the file, and for another file of its name."""
        try:
            found = self._path.stat()
        except OSError as error:
            raise KeyFileError(f"{self._path} cannot be used as a file of API keys: {error}") from error
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def close(self) -> None:
        """Write the usage, and close the file. Usage that cannot be written is logged."""
        try:
            self.synchronize()
        except KeyFileError as error:
            lost = sum((usage for day in self._unstored.values() for usage in day.values()), Usage())
            if lost != Usage():
                fields = {"requests": lost.requests, "characters": lost.characters, "cause": str(error)}
                _log.error("usage of API keys lost", extra=fields)

    def authenticate(self, text: str) -> ApiKey:
        """Return the key with this text. Raises `InvalidApiKey` if it is unknown, revoked or expired."""
        key_id, secret = parts_of(text) or ("", "")
        key = self._keys.get(key_id)
        if key is None or not key.has_secret(secret) or not key.is_valid(self._clock()):
            raise InvalidApiKey("the API key is not valid: unknown, revoked or expired")
        return key

    def begin_request(self, key: ApiKey) -> None:
        """Count a request. Raises `RateLimited` if the key has made too many in the last minute."""
        if (limit := key.limits.requests_per_minute) is not None:
            from limits import RateLimitItemPerMinute

            rate = RateLimitItemPerMinute(limit)
            self._forget_another_time()
            if not self._limiter.hit(rate, key.id):
                wait = max(0.0, self._limiter.get_window_stats(rate, key.id).reset_time - time.time())
                raise RateLimited(
                    f"the API key may make {limit} requests a minute; retry in {wait:.0f} s", retry_after_seconds=wait
                )
        self._add(key, self._today(), Usage(requests=1))

    def _forget_another_time(self) -> None:
        """Begin the windows again if the wall clock was set: set back by an hour, a full window would last an hour."""
        offset = time.time() - time.monotonic()
        if abs(offset - self._clock_offset) > _CLOCK_STEP_SECONDS:
            self._limiter, self._clock_offset = _limiter(), offset

    def charge(self, key: ApiKey, num_characters: int) -> Charge:
        """Count characters to translate. The key's present limits hold, also for documents that began before.

        Raises `QuotaExceeded` if the key has fewer left today, `TextTooLong` if it has fewer on any day, and
        `InvalidApiKey` if it was revoked or has expired.
        """
        present, now = self._keys.get(key.id), self._clock()
        if present is None or not present.is_valid(now):
            raise InvalidApiKey("the API key is no longer valid: revoked or expired")
        limit = present.limits.characters_per_day
        if limit is not None and num_characters > limit:
            raise TextTooLong(
                f"the API key may translate {limit} characters a day, and this request has {num_characters}; divide it"
            )
        if limit is not None and (used := self.usage(key).characters) + num_characters > limit:
            midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
            raise QuotaExceeded(
                f"the API key may translate {limit} characters a day (until 0:00 UTC): {used} are used, and this "
                f"request has {num_characters}",
                retry_after_seconds=(midnight - now).total_seconds(),
            )
        charge = Charge(key, now.date().isoformat(), num_characters)
        self._add(key, charge.day, Usage(characters=num_characters))
        return charge

    def refund(self, charge: Charge) -> None:
        """Take back characters whose translation failed, on the day that has them."""
        self._add(charge.key, charge.day, Usage(characters=-charge.num_characters))

    def usage(self, key: ApiKey) -> Usage:
        """Return the usage of today."""
        today = self._today()
        with self._usage_lock:
            stored = self._stored if today == self._stored_day else {}
            parts = (stored, self._in_writing.get(today, {}), self._unstored.get(today, {}))
            return sum((part[key.id] for part in parts if key.id in part), Usage())

    def _exchange(self, file: KeyFile) -> None:
        """Write the usage that is not stored, read that of today, which other servers may have added to, and keys."""
        with closing(file):
            self._exchange_usage(file)
            self._keys = file.all()

    def _exchange_usage(self, file: KeyFile) -> None:
        with self._usage_lock:
            self._in_writing, self._unstored = self._unstored, {}
        today = self._today()
        try:
            stored = file.record(self._in_writing, today)
        except BaseException:
            with self._usage_lock:
                for day, usage_of_day in self._in_writing.items():
                    for key_id, usage in usage_of_day.items():
                        self._count(day, key_id, usage)
                self._in_writing = {}
            raise
        with self._usage_lock:
            self._stored_day, self._stored, self._in_writing = today, stored, {}

    def _add(self, key: ApiKey, day: str, usage: Usage) -> None:
        with self._usage_lock:
            self._count(day, key.id, usage)

    def _count(self, day: str, key_id: str, usage: Usage) -> None:
        of_day = self._unstored.setdefault(day, {})
        of_day[key_id] = of_day.get(key_id, Usage()) + usage

    def _today(self) -> str:
        return self._clock().date().isoformat()
