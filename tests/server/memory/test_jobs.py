"""Imports and exports: deduplicated, refused as a whole, resumed after a kill."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from server.interface.errors import InvalidRequest, NotFound
from server.memory.files import check_file, read_pairs
from server.memory.jobs import Job, Jobs, import_file
from server.memory.store import MemoryStore, Pair, Quota

WriteTmx = Callable[[Sequence[tuple[str, str]]], Path]


def _uploaded(jobs: Jobs, path: Path, owner: str = "") -> Job:
    job = jobs.create_import(owner, path.name, {"display_name": "Legal", "source": "en", "target": "de"})
    with jobs.upload(job) as file:
        file.write(path.read_bytes())
    return job


def test_a_file_becomes_a_memory_without_its_repetitions(store: MemoryStore, write_tmx: WriteTmx) -> None:
    path = write_tmx([("Stop!", "Halt!"), ("12", "12"), ("Stop!", "Stopp!"), ("Go!", "Los!")])
    memory, skipped = import_file(store, path)
    assert (memory.name, memory.source, memory.targets, memory.num_segments, skipped) == (
        "pairs.tmx",
        "en",
        ("de",),
        2,
        1,
    )
    assert [each.target for each in store.segments(memory, 0, 10)] == ["Stopp!", "Los!"]


def test_of_equal_sources_the_latest_counts_and_has_its_time_and_author(
    store: MemoryStore, write_tmx: WriteTmx
) -> None:
    path = write_tmx([("Stop!", "Halt!"), ("Stop!", "Stopp!")])
    text = path.read_text("utf-8").replace("<tu>", '<tu changedate="20240101T000000Z" changeid="anna">', 1)
    path.write_text(text.replace("<tu>", '<tu changedate="20230101T000000Z">'), "utf-8")
    memory, _ = import_file(store, path)
    [segment] = store.segments(memory, 0, 10)
    assert (segment.target, segment.author, segment.changed) == ("Halt!", "anna", datetime(2024, 1, 1, tzinfo=UTC))
    [segment] = store.put("", memory.id, [Pair("Stop!", "de", "Anhalten!")])
    assert segment.target == "Anhalten!"


def test_a_malformed_file_changes_nothing(store: MemoryStore, write_tmx: WriteTmx) -> None:
    path = write_tmx([("Stop!", "Halt!")] * 5)
    path.write_text(path.read_text("utf-8").replace("</seg>", "", 1), "utf-8")
    with pytest.raises(InvalidRequest, match="line 4"):
        import_file(store, path)
    assert store.memories("", 0, 10) == ([], 0)


def test_a_file_beyond_the_quota_leaves_no_segment(tmp_path: Path, write_tmx: WriteTmx) -> None:
    store = MemoryStore(tmp_path / "small", Quota(max_segments=9000))
    with pytest.raises(InvalidRequest, match="9000 segments"):
        import_file(store, write_tmx([(f"word{number} a", "b") for number in range(12_000)]))
    assert store.memories("", 0, 10) == ([], 0)
    assert store.reader.execute("SELECT count(*) FROM segments").fetchone() == (0,)


def test_languages_that_a_file_lacks_must_be_named(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("Stop!\tHalt!\n", "utf-8")
    with pytest.raises(InvalidRequest, match="languages of this file are unknown"):
        import_file(store, path)
    memory, _ = import_file(store, path, source="en", target="de")
    assert (memory.source, memory.targets) == ("en", ("de",))


def test_an_export_has_all_segments_and_is_reused_while_they_stay(store: MemoryStore, write_tmx: WriteTmx) -> None:
    pairs = [(f"word{number} a", f"b{number}") for number in range(3000)]
    memory, _ = import_file(store, write_tmx(pairs))
    time.sleep(1.0 - time.time() % 1.0)  # times of changes are whole seconds
    jobs = Jobs(store)
    job, is_earlier = jobs.create_export("", memory)
    assert not is_earlier
    jobs.run()
    done = jobs.job(job.id, "")
    assert done.status == "completed"
    check_file(jobs.path(done), "a.tmx")
    found = list(read_pairs(jobs.path(done), "a.tmx", None, None))
    assert [(each.source, each.target) for each in found if each is not None] == pairs


def test_a_job_is_for_its_owner_and_for_whoever_has_its_secret(store: MemoryStore) -> None:
    jobs = Jobs(store)
    job = jobs.create_import("a", "x.tmx", {})
    assert jobs.job(job.id, "a") == jobs.job(job.id, None, job.secret) == job
    for owner, secret in (("b", None), (None, "wrong"), (None, None)):
        with pytest.raises(NotFound):
            jobs.job(job.id, owner, secret)


def test_kills_while_importing_lose_nothing(store: MemoryStore, write_tmx: WriteTmx, tmp_path: Path) -> None:
    kept, _ = import_file(store, write_tmx([("Stop!", "Halt!")]))
    number = 30_000
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"word{index} number {chr(97 + index % 26)}\tWort {index}\n" for index in range(number)))
    jobs = Jobs(store)
    job = _uploaded(jobs, path)
    command = [sys.executable, "-m", "server.memory.jobs", str(store.path), "1000000", "1000000000", "--batch", "1500"]
    position = num_kills = 0
    for _ in range(8):
        process = subprocess.Popen(command)
        deadline = time.monotonic() + 300
        while (now := jobs.job(job.id, "")).position <= position and now.status == "processing":
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        num_kills += process.wait() == -signal.SIGKILL
        reached = jobs.job(job.id, "")
        assert reached.position >= position
        position = reached.position
        if reached.status != "processing":
            break
        assert [each.id for each in store.memories("", 0, 10)[0]] == [kept.id]  # the other one is not complete
    assert num_kills >= 4  # the import may be done before the last ones
    jobs.run()
    done = jobs.job(job.id, "")
    assert (done.status, done.error) == ("completed", None)
    memory = store.memory("", done.memory or "")
    assert memory.num_segments == number
    assert store.reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with store.transaction() as database:
        database.execute("INSERT INTO word_index (word_index) VALUES ('integrity-check')")
    assert [each.name for each in store.path.with_name(f"{store.path.name}-files").iterdir()] == ["lock"]
