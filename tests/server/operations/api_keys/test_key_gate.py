import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from server.interface.errors import InvalidApiKey, QuotaExceeded, RateLimited, TextTooLong
from server.operations.api_keys import key_file, key_gate
from server.operations.api_keys.key_file import KeyFile, KeyFileError, KeyLimits, Usage
from server.operations.api_keys.key_gate import KeyGate
from tests.fakes.event_loop import in_event_loop, until


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 23, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_a_wrong_secret_or_an_expired_key_is_rejected(path: Path, file: KeyFile) -> None:
    clock = Clock()
    _, text = file.add("guest", KeyLimits(), clock.now + timedelta(minutes=1))
    gate = KeyGate(path, clock)
    gate.authenticate(text)
    for wrong in (text[:-1], text + "x", "kvasir-00000000-x", "", "\ud800", "é"):
        with pytest.raises(InvalidApiKey):
            gate.authenticate(wrong)
    clock.now += timedelta(minutes=1)
    with pytest.raises(InvalidApiKey):
        gate.authenticate(text)


def test_requests_a_minute_are_limited_by_key(path: Path, file: KeyFile) -> None:
    limited, other = file.add("one", KeyLimits(requests_per_minute=2))[0], file.add("two", KeyLimits())[0]
    gate = KeyGate(path)
    gate.begin_request(limited)
    gate.begin_request(limited)
    with pytest.raises(RateLimited, match="2 requests a minute") as error:
        gate.begin_request(limited)
    assert 0 < error.value.retry_after_seconds <= 60
    for _ in range(5):
        gate.begin_request(other)
    assert gate.usage(limited).requests == 2


def test_characters_a_day_are_limited_until_midnight(path: Path, file: KeyFile) -> None:
    clock = Clock()
    key, _ = file.add("team", KeyLimits(characters_per_day=100))
    gate = KeyGate(path, clock)
    gate.charge(key, 60)
    with pytest.raises(QuotaExceeded, match=r"100 characters a day .*: 60 are used, and this request has 41") as error:
        gate.charge(key, 41)
    assert error.value.retry_after_seconds == 3600
    gate.charge(key, 40)
    clock.now += timedelta(hours=1)
    gate.charge(key, 100)


def test_a_request_above_the_quota_of_any_day_is_not_told_to_wait(path: Path, file: KeyFile) -> None:
    key, _ = file.add("team", KeyLimits(characters_per_day=100))
    gate = KeyGate(path)
    with pytest.raises(TextTooLong, match=r"100 characters a day, and this request has 101; divide it"):
        gate.charge(key, 101)
    gate.charge(key, 100)


def test_characters_are_returned_to_the_day_that_was_charged(path: Path, file: KeyFile) -> None:
    clock = Clock()
    key, _ = file.add("team", KeyLimits(characters_per_day=100))
    gate = KeyGate(path, clock)
    charge = gate.charge(key, 80)
    gate.synchronize()
    clock.now += timedelta(hours=2)
    gate.refund(charge)
    gate.charge(key, 100)
    with pytest.raises(QuotaExceeded):
        gate.charge(key, 1)
    gate.synchronize()
    assert [file.usage(day)[key.id].characters for day in ("2026-03-01", "2026-03-02")] == [0, 100]


def test_a_clock_set_back_to_the_day_before_finds_its_usage_again(path: Path, file: KeyFile) -> None:
    clock = Clock()
    key, _ = file.add("team", KeyLimits(characters_per_day=100))
    gate = KeyGate(path, clock)
    gate.charge(key, 100)
    clock.now += timedelta(hours=2)
    gate.synchronize()
    gate.charge(key, 30)
    clock.now -= timedelta(hours=2)
    gate.synchronize()
    with pytest.raises(QuotaExceeded):
        gate.charge(key, 1)


def test_work_that_began_before_a_change_follows_it(path: Path, file: KeyFile) -> None:
    """A document is charged block by block, for hours."""
    key, _ = file.add("team", KeyLimits())
    gate = KeyGate(path)
    gate.charge(key, 100)
    file.limit(key.id, {"characters_per_day": 150})
    gate.synchronize()
    with pytest.raises(QuotaExceeded):
        gate.charge(key, 51)
    file.revoke(key.id)
    gate.synchronize()
    with pytest.raises(InvalidApiKey, match="no longer valid"):
        gate.charge(key, 1)


def test_servers_with_one_file_add_up_their_usage(path: Path, file: KeyFile) -> None:
    key, _ = file.add("team", KeyLimits(characters_per_day=100))
    one, other = KeyGate(path), KeyGate(path)
    one.charge(key, 60)
    other.charge(key, 30)
    for gate in (one, other, one):
        gate.synchronize()
    assert [gate.usage(key).characters for gate in (one, other)] == [90, 90]
    with pytest.raises(QuotaExceeded):
        other.charge(key, 11)


def test_usage_survives_a_restart_and_the_quota_with_it(path: Path, file: KeyFile) -> None:
    clock = Clock()
    key, _ = file.add("team", KeyLimits(characters_per_day=100))
    first = KeyGate(path, clock)
    first.begin_request(key)
    first.charge(key, 80)
    first.synchronize()
    first.charge(key, 10)
    first.close()
    second = KeyGate(path, clock)
    assert second.usage(key) == Usage(1, 90)
    with pytest.raises(QuotaExceeded):
        second.charge(key, 11)


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_clock_that_was_set_locks_no_key_out(
    path: Path, file: KeyFile, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = file.add("one", KeyLimits(requests_per_minute=2))[0]
    gate = KeyGate(path)
    gate.begin_request(limited)
    gate.begin_request(limited)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + seconds)
    gate.begin_request(limited)
    gate.begin_request(limited)
    with pytest.raises(RateLimited) as error:
        gate.begin_request(limited)
    assert error.value.retry_after_seconds <= 60


def _lock(path: Path) -> Callable[[], object]:
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    return other.rollback


def _damage(path: Path) -> Callable[[], object]:
    content = path.read_bytes()
    os.truncate(path, 100)
    return lambda: path.write_bytes(content)


def _take_away(path: Path) -> Callable[[], object]:
    kept = path.rename(path.with_name("kept"))
    return lambda: kept.rename(path)


def _put_a_folder(path: Path) -> Callable[[], object]:
    restore = _take_away(path)
    path.mkdir()

    def exchange() -> None:
        path.rmdir()
        restore()

    return exchange


def _put_something_else(path: Path) -> Callable[[], object]:
    restore = _take_away(path)
    path.write_text("no database " * 100)
    return restore


def _put_a_row_that_is_no_key(path: Path) -> Callable[[], object]:
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO keys (id, name, secret_sha256, created, documents) VALUES ('1', '', '', '2026-01-01', 'many')"
        )

    def delete() -> None:
        with sqlite3.connect(path) as database:
            database.execute("DELETE FROM keys WHERE id = '1'")

    return delete


@pytest.mark.parametrize(
    "spoil", [_lock, _damage, _take_away, _put_a_folder, _put_something_else, _put_a_row_that_is_no_key]
)
def test_a_file_that_cannot_be_used_for_a_while_costs_no_key_and_no_usage(
    path: Path, file: KeyFile, spoil: Callable[[Path], Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_file, "_BUSY_SECONDS", 0.01)
    key, text = file.add("team", KeyLimits())
    gate = KeyGate(path)
    gate.charge(key, 10)
    restore = spoil(path)
    for _ in range(2):
        with pytest.raises(KeyFileError, match=r"keys\.sqlite cannot be used as a file of API keys"):
            gate.synchronize()
        gate.charge(gate.authenticate(text), 1)
        gate.begin_request(key)
    assert gate.usage(key) == Usage(2, 12)
    restore()
    gate.synchronize()
    later, text = KeyFile(path).add("later", KeyLimits())
    gate.synchronize()
    assert gate.authenticate(text) == later
    assert gate.usage(key) == Usage(2, 12)
    assert KeyFile(path).usage()[key.id] == Usage(2, 12)


def test_a_file_renamed_to_the_name_of_the_file_replaces_it(path: Path, file: KeyFile) -> None:
    """The keys of the old file end, and nothing of it gets into the new one."""
    old, old_text = file.add("old", KeyLimits())
    gate = KeyGate(path)
    gate.charge(old, 10)
    gate.synchronize()
    new, new_text = KeyFile(path.with_name("other")).add("new", KeyLimits())
    path.with_name("other").rename(path)
    assert list(path.parent.iterdir()) == [path]
    gate.synchronize()
    assert gate.authenticate(new_text) == new
    with pytest.raises(InvalidApiKey):
        gate.authenticate(old_text)
    gate.charge(new, 5)
    gate.close()
    assert KeyFile(path).usage() == {new.id: Usage(0, 5)}


def test_a_file_copied_over_the_open_file_replaces_it(path: Path, file: KeyFile) -> None:
    old, old_text = file.add("old", KeyLimits())
    gate = KeyGate(path)
    new, new_text = KeyFile(path.with_name("other")).add("new", KeyLimits())
    path.write_bytes(path.with_name("other").read_bytes())
    gate.charge(old, 10)
    gate.synchronize()
    assert gate.authenticate(new_text) == new
    with pytest.raises(InvalidApiKey):
        gate.authenticate(old_text)
    gate.charge(new, 5)
    gate.close()
    copied = KeyFile(path)
    assert (copied.all(), copied.usage()) == ({new.id: new}, {new.id: Usage(0, 5)})


def test_usage_that_is_lost_at_the_end_is_logged(path: Path, file: KeyFile, caplog: pytest.LogCaptureFixture) -> None:
    key, _ = file.add("team", KeyLimits())
    gate = KeyGate(path)
    gate.begin_request(key)
    gate.charge(key, 10)
    path.unlink()
    gate.close()
    [record] = caplog.records
    assert (record.message, vars(record)["requests"], vars(record)["characters"]) == ("usage of API keys lost", 1, 10)


@in_event_loop
async def test_trouble_with_the_file_is_logged_once_and_its_end_too(
    path: Path, file: KeyFile, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_gate, "_FILE_SECONDS", 0.001)
    caplog.set_level("INFO")
    gate = KeyGate(path)
    running = asyncio.create_task(gate.run())
    restore = _take_away(path)
    await until(lambda: bool(caplog.records))
    await asyncio.sleep(0.05)
    restore()
    await until(lambda: len(caplog.records) > 1)
    running.cancel()
    assert [record.message for record in caplog.records] == [
        "file of API keys cannot be used; its keys stay as they were",
        "file of API keys is usable again",
    ]
