"""Check of API keys, their limits, and the count of their usage, in a running server."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from server.interface.errors import InvalidApiKey, QuotaExceeded, RateLimited, TextTooLong
from server.operations.api_keys.key_file import ApiKey, KeyFile, Usage, parts_of

_REFRESH_SECONDS = 1.0  # until a change of the file takes effect
_CLOCK_STEP_SECONDS = 1.0  # more is no adjustment, but a clock that was set


class KeyGate:
    """Keys of one server. The event loop's thread uses it; `flush` may run in another."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Raises ValueError if the file cannot be used."""
        # Two connections: the event loop never waits for the one that writes.
        self._reader, self._writer = KeyFile(path), KeyFile(path)
        self._clock = clock
        self._version, self._read_at = self._reader.version(), time.monotonic()
        self._keys = self._reader.all()
        self._limiter = MovingWindowRateLimiter(MemoryStorage())  # by the wall clock
        self._clock_offset = time.time() - time.monotonic()
        self._lock = Lock()
        self._day = self._today()
        self._stored = self._reader.usage(self._day)
        self._unstored: dict[str, dict[str, Usage]] = {}  # by day and key

    def authenticate(self, text: str) -> ApiKey:
        """Return the key with this text. Raises `InvalidApiKey` if it is unknown, revoked or expired."""
        self._refresh()
        key_id, secret = parts_of(text) or ("", "")
        key = self._keys.get(key_id)
        if key is None or not key.has_secret(secret) or not key.is_valid(self._clock()):
            raise InvalidApiKey("the API key is not valid: unknown, revoked or expired")
        return key

    def begin_request(self, key: ApiKey) -> None:
        """Count a request. Raises `RateLimited` if the key has made too many in the last minute."""
        if (limit := key.limits.requests_per_minute) is not None:
            rate = RateLimitItemPerMinute(limit)
            self._forget_another_time()
            if not self._limiter.hit(rate, key.id):
                wait = max(0.0, self._limiter.get_window_stats(rate, key.id).reset_time - time.time())
                raise RateLimited(
                    f"the API key may make {limit} requests a minute; retry in {wait:.0f} s", retry_after_seconds=wait
                )
        self._add(key, Usage(requests=1))

    def _forget_another_time(self) -> None:
        """Begin the windows again if the wall clock was set: set back by an hour, a full window would last an hour."""
        offset = time.time() - time.monotonic()
        if abs(offset - self._clock_offset) > _CLOCK_STEP_SECONDS:
            self._limiter, self._clock_offset = MovingWindowRateLimiter(MemoryStorage()), offset

    def charge(self, key: ApiKey, num_characters: int) -> None:
        """Count characters to translate.

        Raises `QuotaExceeded` if the key has fewer left today, and `TextTooLong` if it has fewer on any day.
        """
        limit = key.limits.characters_per_day
        if limit is not None and num_characters > limit:
            raise TextTooLong(
                f"the API key may translate {limit} characters a day, and this request has {num_characters}; divide it"
            )
        if limit is not None and (used := self.usage(key).characters) + num_characters > limit:
            now = self._clock()
            midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
            raise QuotaExceeded(
                f"the API key may translate {limit} characters a day (until 0:00 UTC): {used} are used, and this "
                f"request has {num_characters}",
                retry_after_seconds=(midnight - now).total_seconds(),
            )
        self._add(key, Usage(characters=num_characters))

    def refund(self, key: ApiKey, num_characters: int) -> None:
        """Take back characters whose translation failed."""
        self._add(key, Usage(characters=-num_characters))

    def usage(self, key: ApiKey) -> Usage:
        """Return the usage of today."""
        today = self._today()
        with self._lock:
            if today != self._day:
                self._day, self._stored = today, {}
            return self._stored.get(key.id, Usage()) + self._unstored.get(today, {}).get(key.id, Usage())

    def flush(self) -> None:
        """Write the usage since the last call to the file. Raises `sqlite3.Error`, and keeps it, if that fails."""
        with self._lock:
            days, self._unstored = self._unstored, {}
            for key, usage in days.get(self._day, {}).items():
                self._stored[key] = self._stored.get(key, Usage()) + usage
        while days:
            day, usage_of_day = next(iter(days.items()))
            try:
                self._writer.record(day, usage_of_day)
            except BaseException:
                self._restore(days)
                raise
            del days[day]

    def close(self) -> None:
        """Write the usage, and close the file."""
        try:
            self.flush()
        finally:
            self._reader.close()
            self._writer.close()

    def _restore(self, days: dict[str, dict[str, Usage]]) -> None:
        with self._lock:
            for day, usage_of_day in days.items():
                for key, usage in usage_of_day.items():
                    kept = self._unstored.setdefault(day, {})
                    kept[key] = kept.get(key, Usage()) + usage
                    if day == self._day:
                        self._stored[key] = self._stored[key] + Usage(-usage.requests, -usage.characters)

    def _add(self, key: ApiKey, usage: Usage) -> None:
        with self._lock:
            of_day = self._unstored.setdefault(self._today(), {})
            of_day[key.id] = of_day.get(key.id, Usage()) + usage

    def _refresh(self) -> None:
        if time.monotonic() - self._read_at < _REFRESH_SECONDS:
            return
        self._read_at = time.monotonic()
        if (version := self._reader.version()) != self._version:
            self._version, self._keys = version, self._reader.all()

    def _today(self) -> str:
        return self._clock().date().isoformat()
