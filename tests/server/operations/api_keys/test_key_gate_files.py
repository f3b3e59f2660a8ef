import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from server.interface.errors import InvalidApiKey
from server.operations.api_keys import key_file, key_gate
from server.operations.api_keys.key_file import KeyFile, KeyFileError, KeyLimits, Usage
from server.operations.api_keys.key_gate import KeyGate
from tests.fakes.event_loop import in_event_loop, until


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
