import sqlite3
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from server.operations.api_keys import key_file
from server.operations.api_keys.key_file import KeyFile, KeyFileError, KeyLimits, Usage, parts_of


def test_the_file_holds_no_secret(path: Path) -> None:
    _, text = KeyFile(path).add("team", KeyLimits())
    _, secret = parts_of(text) or ("", "")
    assert len(secret) >= 43  # 256 bits
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"team" in content
    assert secret.encode() not in content
    assert path.stat().st_mode & 0o077 == 0


def test_a_key_is_found_by_another_process_with_its_limits(path: Path) -> None:
    added, text = KeyFile(path).add("team", KeyLimits(60, 5000))
    [found] = KeyFile(path).all().values()
    assert found == added
    key_id, secret = parts_of(text) or ("", "")
    assert key_id == found.id
    assert found.has_secret(secret)
    assert not found.has_secret(secret[:-1])


def test_a_secret_may_contain_hyphens_and_spaces_around_a_key_are_ignored() -> None:
    assert parts_of(" kvasir-1234-a-b-c\n") == ("1234", "a-b-c")


def test_a_key_ends_when_it_expires_or_is_revoked(path: Path) -> None:
    file, now = KeyFile(path), datetime.now(UTC)
    key, _ = file.add("guest", KeyLimits(), now + timedelta(days=1))
    assert key.is_valid(now)
    assert not key.is_valid(now + timedelta(days=1))
    revoked = file.revoke(key.id)
    assert not revoked.is_valid(now)
    assert file.revoke(key.id).revoked == revoked.revoked


def test_limits_changed_by_two_processes_at_once_are_both_kept(path: Path) -> None:
    file = KeyFile(path)
    key, _ = file.add("team", KeyLimits(60, 5000))
    changes = [{"requests_per_minute": 7}, {"characters_per_day": 8}, {"waiting_sentences": 9}, {"documents": 10}]
    threads = [threading.Thread(target=KeyFile(path).limit, args=(key.id, change)) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.all()[key.id].limits == KeyLimits(7, 8, 9, 10)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201])
def test_a_name_fits_a_line(path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="printable"):
        KeyFile(path).add(name, KeyLimits())


def test_usage_of_several_processes_is_added_up_by_day(path: Path) -> None:
    one, other = KeyFile(path), KeyFile(path)
    key, _ = one.add("team", KeyLimits())
    one.record({"2026-01-01": {key.id: Usage(1, 10), "gone": Usage(1, 1)}}, "2026-01-01")
    later = {"2026-01-01": {key.id: Usage(2, 5)}, "2026-01-02": {key.id: Usage(1, 1)}}
    assert other.record(later, "2026-01-01") == {key.id: Usage(3, 15)}
    assert one.usage("2026-01-01") == {key.id: Usage(3, 15)}
    assert one.usage() == {key.id: Usage(4, 16)}
    assert one.usage("2026-01-03") == {}


def test_a_file_of_a_later_version_keeps_what_this_one_lacks(path: Path) -> None:
    key, _ = KeyFile(path).add("team", KeyLimits(60, 1000))
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE keys ADD COLUMN colour TEXT DEFAULT 'red'")
    file = KeyFile(path)
    added, _ = file.add("other", KeyLimits(5))
    assert file.all() == {key.id: key, added.id: added}
    assert database.execute("SELECT colour FROM keys").fetchall() == [("red",), ("red",)]


def test_a_file_that_is_locked_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_file, "_BUSY_SECONDS", 0.01)
    file = KeyFile(path)
    key, _ = file.add("team", KeyLimits())
    with sqlite3.connect(path) as other:
        other.execute("BEGIN EXCLUSIVE")
        for use in (
            file.all,
            file.usage,
            lambda: file.revoke(key.id),
            lambda: file.add("a", KeyLimits()),
        ):
            with pytest.raises(KeyFileError, match=r"keys\.sqlite cannot be used .*: database is locked"):
                use()


def test_a_file_without_the_newer_limits_keeps_its_keys(path: Path) -> None:
    key, _ = KeyFile(path).add("team", KeyLimits(60, 1000))
    with sqlite3.connect(path) as database:
        for column in ("documents", "waiting_sentences", "join_lines"):
            database.execute(f"ALTER TABLE keys DROP COLUMN {column}")
    file = KeyFile(path)
    assert file.all()[key.id] == key
    assert file.limit(key.id, {"documents": 3, "waiting_sentences": 5}).limits == KeyLimits(60, 1000, 5, 3)
    assert KeyFile(path).all()[key.id].limits == KeyLimits(60, 1000, 5, 3)
    assert KeyFile(path).add("other", KeyLimits(documents=2))[0].limits == KeyLimits(None, None, None, 2)
