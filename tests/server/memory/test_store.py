"""The store of translation memories: what a viewer sees, limits, and look-ups."""

import random
import sqlite3
from pathlib import Path
from threading import Thread

import pytest

from server.interface.errors import InvalidRequest, NotFound, StorageFull
from server.memory.store import EVERYONE, Lookup, Memory, MemoryStore, Pair, Quota, backup


def _filled(store: MemoryStore, *pairs: tuple[str, str], owner: str = "") -> Memory:
    memory = store.create(owner, "Legal", "en", ["de"])
    store.put(owner, memory.id, [Pair(source, "de", target) for source, target in pairs])
    return store.memory(owner, memory.id)


def _find(store: MemoryStore, memory: Memory, text: str, threshold: int = 75) -> tuple[int, str] | None:
    found = Lookup(store, (memory,), threshold).find(text, "en", "de")
    return None if found is None else (found.score, found.target)


def test_an_equal_sentence_is_found_whatever_its_numbers_and_spaces(store: MemoryStore) -> None:
    memory = _filled(store, ("Press 5 times.", "5-mal drücken."), ("Stop!", "Halt!"))
    assert _find(store, memory, "Press  12 times. ") == (100, "12-mal drücken.")
    assert _find(store, memory, "Stop!") == (100, "Halt!")
    assert _find(store, memory, "Go!") is None


def test_a_translation_has_no_white_space_that_the_sentence_lacks(store: MemoryStore) -> None:
    memory = _filled(store, ("a line\nbreak", "\n ein Zeilen-\n  umbruch "))
    assert _find(store, memory, "a line break") == (100, "ein Zeilen- umbruch")
    assert _find(store, memory, "a line\nbreak") == (100, "ein Zeilen-\n  umbruch")


def test_of_equal_sentences_the_one_with_the_same_numbers_wins(store: MemoryStore) -> None:
    memory = _filled(store, ("1 file", "1 Datei"), ("5 files", "5 Dateien"), ("3 files", "drei Dateien"))
    assert _find(store, memory, "3 files") == (100, "drei Dateien")
    assert _find(store, memory, "8 files") == (100, "8 Dateien")


def test_a_similar_sentence_is_found_from_the_threshold_on(store: MemoryStore) -> None:
    memory = _filled(store, ("The red pump is in the old house.", "A"), ("The red pump was sold to a friend.", "B"))
    assert _find(store, memory, "The red pump is in the new house.") == (87, "A")
    assert _find(store, memory, "The red pump is in the new house.", 90) is None
    assert Lookup(store, (memory,)).find("The red pump is in the new house.", "en", "de", is_sentence=False) is None


def test_the_index_finds_what_a_comparison_with_every_segment_finds(store: MemoryStore) -> None:
    choose = random.Random(1)
    words = [f"{letter}{number}" for letter in "bdfg" for number in ("a", "e", "i", "o", "u", "ax", "ex", "ix")]
    sources = sorted({" ".join(choose.choices(words, k=choose.randint(4, 9))) for _ in range(300)})
    memory = _filled(store, *((source, source) for source in sources))
    missed = 0
    for source in sources:
        changed = source.split(" ")
        changed[choose.randrange(len(changed))] = "other"
        found = _find(store, memory, " ".join(changed), 70)
        missed += len(changed) >= 4 and (found is None or found[0] < 75)
    assert missed <= len(sources) // 50


def test_languages_must_fit(store: MemoryStore) -> None:
    memory = _filled(store, ("Stop!", "Halt!"))
    lookup = Lookup(store, (memory,))
    assert lookup.find("Stop!", "en-GB", "de-AT") is not None
    assert lookup.find("Stop!", "de", "en") is None
    assert lookup.find("Stop!", "en", "fr") is None


def test_a_changed_translation_replaces_the_first_and_a_deleted_one_is_gone(store: MemoryStore) -> None:
    memory = _filled(store, ("The red pump is old.", "falsch"))
    [segment] = store.put("", memory.id, [Pair("The red pump is old.", "de", "richtig")])
    assert _find(store, memory, "The red pump is old.") == (100, "richtig")
    assert store.memory("", memory.id).num_segments == 1
    store.delete_segment("", memory.id, segment.id)
    assert _find(store, memory, "The red pump is old.") is None
    assert _find(store, memory, "The red pump is new.") is None
    assert store.memory("", memory.id).num_segments == 0
    with pytest.raises(NotFound):
        store.delete_segment("", memory.id, segment.id)


def test_a_key_sees_its_own_memories_those_shared_with_it_and_those_of_nobody(store: MemoryStore) -> None:
    own, shared, public, foreign = (_filled(store, ("Stop!", "Halt!"), owner=key) for key in ("a", "b", "", "b"))
    store.change("b", shared.id, shared_with=["a"])
    assert {each.id for each in store.memories("a", 0, 10)[0]} == {own.id, shared.id, public.id}
    for action in (
        lambda: store.memory("a", foreign.id),
        lambda: store.chosen("a", foreign.id),
        lambda: store.put("a", foreign.id, [Pair("x", "de", "y")]),
        lambda: store.put("a", public.id, [Pair("x", "de", "y")]),
        lambda: store.change("a", shared.id, name="mine"),
        lambda: store.delete("a", shared.id),
    ):
        with pytest.raises(NotFound):
            action()
    store.put("a", shared.id, [Pair("Go!", "de", "Los!")])
    assert [each.author for each in store.segments(store.memory("b", shared.id), 0, 10)] == ["b", "a"]
    store.change("b", foreign.id, shared_with=[EVERYONE])
    assert store.memory("c", foreign.id).num_segments == 1


def test_each_key_decides_which_memories_it_uses_by_default(store: MemoryStore) -> None:
    memory = _filled(store, ("Stop!", "Halt!"), owner="a")
    assert store.chosen("a", None) == ()
    assert store.change("a", memory.id, is_default=True, shared_with=[EVERYONE]).is_default
    assert [each.id for each in store.chosen("a", None)] == [memory.id]
    assert store.chosen("b", None) == ()
    assert not store.memory("b", memory.id).is_default
    assert store.change("b", memory.id, is_default=True).is_default
    assert [each.id for each in store.chosen("b", None)] == [memory.id]
    store.change("a", memory.id, shared_with=[], is_default=False)
    assert store.chosen("a", None) == store.chosen("b", None) == ()
    with pytest.raises(NotFound):
        store.change("b", memory.id, is_default=True)


def test_beyond_a_quota_nothing_is_stored(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "memories", Quota(max_segments=2, max_bytes=100))
    memory = _filled(store, ("a b", "c"), ("d e", "f"))
    for pair in (Pair("g h", "de", "i"), Pair("a b", "de", "x" * 100)):
        with pytest.raises(InvalidRequest, match="for each API key"):
            store.put("", memory.id, [pair])
    for _ in range(30):  # replaced texts do not count for ever
        store.put("", memory.id, [Pair("a b", "de", "another")])
    assert store.memory("", memory.id).num_segments == 2


@pytest.mark.parametrize("pair", [Pair("12.5", "de", "12,5"), Pair("word", "de", " "), Pair("w" * 20_000, "de", "x")])
def test_what_is_no_segment_is_refused(store: MemoryStore, pair: Pair) -> None:
    memory = _filled(store, ("Stop!", "Halt!"))
    with pytest.raises(InvalidRequest, match="a segment must have"):
        store.put("", memory.id, [Pair("Go!", "de", "Los!"), pair])
    assert _find(store, memory, "Go!") is None


def test_a_full_disk_leaves_the_file_whole(store: MemoryStore) -> None:
    memory = _filled(store, ("Stop!", "Halt!"))
    with store.transaction() as database:
        [pages] = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageFull):
        store.put("", memory.id, [Pair(f"word {'x' * 99} {number}", "de", "y" * 5000) for number in range(100)])
    with store.transaction() as database:
        database.execute("PRAGMA max_page_count = 1000000")
    assert _find(store, memory, "Stop!") == (100, "Halt!")
    store.put("", memory.id, [Pair("Go!", "de", "Los!")])
    assert store.memory("", memory.id).num_segments == 2


def test_a_deleted_memory_is_gone_at_once_and_its_space_is_freed_while_others_write(store: MemoryStore) -> None:
    kept = _filled(store, ("Stop!", "Halt!"))
    memory = _filled(store, *((f"word {number} of {chr(97 + number % 26)}", "x") for number in range(10_000)))
    store.delete("", memory.id)
    assert [each.id for each in store.memories("", 0, 10)[0]] == [kept.id]
    other = MemoryStore(store.path)
    purging = Thread(target=other.purge)
    purging.start()
    numbers: list[int] = []
    while purging.is_alive():
        store.put("", kept.id, [Pair(f"Go {len(numbers)} now!", "de", "Los!")])
        numbers.append(store.reader.execute("SELECT count(*) FROM segments WHERE memory = 2").fetchone()[0])
    assert any(0 < number < 10_000 for number in numbers)  # not all at once
    assert not store.has_deleted
    assert store.reader.execute("SELECT count(*) FROM segments WHERE memory = 2").fetchone() == (0,)
    assert _find(store, kept, "Stop!") == (100, "Halt!")
    with store.transaction() as database:
        database.execute("INSERT INTO word_index (word_index) VALUES ('integrity-check')")
    other.close()


def test_a_copy_of_a_file_in_use_is_whole(store: MemoryStore, tmp_path: Path) -> None:
    memory = _filled(store, ("Stop!", "Halt!"))
    backup(store.path, tmp_path / "copy")
    store.delete("", memory.id)
    copied = MemoryStore(tmp_path / "copy")
    assert _find(copied, copied.memory("", memory.id), "Stop!") == (100, "Halt!")
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ValueError, match="cannot be copied"):
        backup(tmp_path / "missing", tmp_path / "other")
    with pytest.raises(ValueError, match="the file itself"):
        backup(store.path, store.path)
    assert sorted(path.name for path in tmp_path.glob("c*")) == ["copy", "copy-shm", "copy-wal"]


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "memories")
    _filled(store, *((f"word {number} of many", "x" * 200) for number in range(500)))
    store.close()
    with sqlite3.connect(tmp_path / "memories") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    content = bytearray((tmp_path / "memories").read_bytes())
    content[8192:60_000] = bytes(60_000 - 8192)
    (tmp_path / "memories").write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged|cannot be used"):
        MemoryStore(tmp_path / "memories")
