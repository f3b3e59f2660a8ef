import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from server.interface.errors import InvalidApiKey, QuotaExceeded, RateLimited, TextTooLong
from server.operations.api_keys.key_file import KeyFile, KeyLimits, Usage
from server.operations.api_keys.key_gate import KeyGate


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 23, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_keys_take_effect_and_end_while_the_server_runs(path: Path, file: KeyFile) -> None:
    gate = KeyGate(path)
    key, text = file.add("team", KeyLimits())
    with pytest.raises(InvalidApiKey):
        gate.authenticate(text)
    gate.synchronize()
    assert gate.authenticate(text).id == key.id
    file.revoke(key.id)
    gate.synchronize()
    with pytest.raises(InvalidApiKey):
        gate.authenticate(text)


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


def test_a_failed_request_is_not_charged(path: Path, file: KeyFile) -> None:
    key, _ = file.add("team", KeyLimits(characters_per_day=100))
    gate = KeyGate(path)
    gate.refund(gate.charge(key, 100))
    gate.charge(key, 100)
    assert gate.usage(key).characters == 100


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
