import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from server.interface.errors import InvalidRequest, NotFound, StoreBusy
from server.text.glossary import Glossary
from server.translation import glossaries as glossaries_module
from server.translation.glossaries import MAX_GLOSSARIES, GlossaryStore, MultilingualGlossaries


def test_a_glossary_is_there_again_when_the_file_is_opened_again(tmp_path: Path) -> None:
    store = GlossaryStore(tmp_path / "glossaries.sqlite")
    made = store.create("Houses", "en", "de", {"house": "Gebäude", "a": "b"})
    store.close()
    again = GlossaryStore(tmp_path / "glossaries.sqlite")
    assert again.all() == [made] == [again.info(made.id)]
    assert made.num_entries == 2
    assert list(again.glossary(made.id).entries) == ["house", "a"]
    again.close()


def test_a_glossary_that_was_deleted_is_gone(tmp_path: Path) -> None:
    store = GlossaryStore(None)
    made = store.create("Houses", "en", "de", {"house": "Gebäude"})
    store.delete(made.id)
    assert store.all() == []
    for ask in (store.info, store.glossary, store.delete):
        with pytest.raises(NotFound):
            ask(made.id)
    store.close()


def test_names_and_numbers_have_limits() -> None:
    store = GlossaryStore(None)
    for name in ("", " ", "x" * 1025):
        with pytest.raises(InvalidRequest, match="`name` must have"):
            store.create(name, "en", "de", {"a": "b"})
    for number in range(MAX_GLOSSARIES):
        store.create(str(number), "en", "de", {"a": "b"})
    with pytest.raises(InvalidRequest, match="delete some"):
        store.create("one more", "en", "de", {"a": "b"})
    store.close()


def test_threads_may_share_a_store() -> None:
    store = GlossaryStore(None)
    threads = [threading.Thread(target=store.create, args=(str(n), "en", "de", {"a": "b"})) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(info.name) for info in store.all()) == list(range(20))
    store.close()


def test_a_file_that_is_no_database_is_rejected_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, and longer than its header would be" * 10, encoding="utf-8")
    with pytest.raises(ValueError, match=r"notes\.txt cannot be used to store glossaries"):
        GlossaryStore(tmp_path / "notes.txt")


def test_all_glossaries_together_have_a_limit_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "glossaries.sqlite"
    store, other = GlossaryStore(path, max_bytes=1000), GlossaryStore(path, max_bytes=1000)
    first = store.create("one", "en", "de", {f"a{number:03}": "\u00e4" * 48 for number in range(6)})
    with pytest.raises(InvalidRequest, match=r"600 of 1000 bytes; delete some glossaries\. Given: 500 bytes"):
        store.create("two", "en", "de", {"x" * 100: "y" * 150, "z" * 100: "y" * 150})
    other.create("two", "en", "de", {"x" * 200: "y" * 200})
    with pytest.raises(InvalidRequest, match="1000 of 1000 bytes"):
        store.create("three", "en", "de", {"a": "b"})
    other.delete(first.id)
    store.create("three", "en", "de", {"a": "b"})
    store.close()
    other.close()


def test_a_locked_file_is_an_error_at_once(tmp_path: Path) -> None:
    path = tmp_path / "glossaries.sqlite"
    store = GlossaryStore(path)
    made = store.create("one", "en", "de", {"a": "b"})
    store._ready.clear()
    locking = sqlite3.connect(path)
    locking.execute("BEGIN EXCLUSIVE")
    begun = time.monotonic()
    for ask in (store.all, lambda: store.glossary(made.id), lambda: store.create("two", "en", "de", {"a": "b"})):
        with pytest.raises(StoreBusy, match="locked; retry later"):
            ask()
    assert time.monotonic() - begun < 5.0  # how long SQLite waits for one lock unless it is told otherwise
    locking.close()
    assert store.all() == [made]
    store.close()


def test_glossaries_without_a_file_are_in_the_folder_and_leave_nothing_there(tmp_path: Path) -> None:
    store = GlossaryStore(None, folder=tmp_path)
    made = store.create("one", "en", "de", {f"{number}" * 50: "b" * 200 for number in range(1000, 5000)})
    assert list(tmp_path.iterdir()) == []
    store._ready.clear()
    assert len(store.glossary(made.id).entries) == 4000
    store.close()


def test_glossaries_ready_for_use_have_a_limit_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossaries_module, "_READY_BYTES", 100_000)
    store = GlossaryStore(None)
    for name in "abcdefgh":
        made = store.create(name, "en", "de", {f"{name}{number}" + "x" * 90: "y" * 195 for number in range(30)})
        store.glossary(made.id)
    assert len(store._ready) == 2
    store.close()


def test_a_glossary_deleted_while_it_is_prepared_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was kept ready for use, and so was used for as long as the server ran."""
    store = GlossaryStore(None)
    has_read, may_go_on = threading.Event(), threading.Event()
    made = store.create("Houses", "en", "de", {"house": "Gebäude"})
    store._ready.clear()

    def prepare_slowly(entries: dict[str, str]) -> Glossary:
        has_read.set()
        assert may_go_on.wait(60)
        return Glossary(entries)

    monkeypatch.setattr(glossaries_module, "Glossary", prepare_slowly)
    reading = threading.Thread(target=store.glossary, args=(made.id,))
    reading.start()
    assert has_read.wait(60)
    store.delete(made.id)
    may_go_on.set()
    reading.join()
    with pytest.raises(NotFound):
        store.glossary(made.id)
    store.close()


def test_a_glossary_that_another_server_deletes_is_gone(tmp_path: Path) -> None:
    store, other = GlossaryStore(tmp_path / "a.sqlite"), GlossaryStore(tmp_path / "a.sqlite")
    made = store.create("Houses", "en", "de", {"house": "Gebäude"})
    assert store.glossary(made.id).entries
    other.delete(made.id)
    with pytest.raises(NotFound):
        store.glossary(made.id)
    store.close()
    other.close()


_PAIRS = [("en", "de"), ("de", "en"), ("en", "fr")]
_TIMES = 5  # that each action must succeed
_PATIENCE_SECONDS = 60.0


@pytest.fixture(params=[None, "glossaries.sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> GlossaryStore:
    return GlossaryStore(None if request.param is None else tmp_path / request.param)


def test_changes_at_once_leave_every_glossary_whole(store: GlossaryStore) -> None:
    """A list was 404 while a glossary was deleted, and a dictionary for a deleted glossary an `IntegrityError`."""
    glossaries = MultilingualGlossaries(store)
    shared = [glossaries.create("shared", {_PAIRS[0]: {"a": "b"}}).id for _ in range(2)]
    single = store.create("single", *_PAIRS[0], {"a": "b"}).id
    give_up = time.monotonic() + _PATIENCE_SECONDS
    errors: Counter[str] = Counter()
    done: Counter[str] = Counter()

    def renew() -> None:
        glossaries.delete(shared[0])
        shared[0] = glossaries.create("shared", {pair: {"a": "b"} for pair in _PAIRS[:2]}).id

    actions: dict[str, Callable[[], object]] = {
        "list": glossaries.all,
        "list of single ones": store.all,
        "renew": renew,
        "info": lambda: glossaries.info(shared[0]),
        "entries": lambda: glossaries.entries(shared[0], _PAIRS[0]),
        "put": lambda: glossaries.put(shared[0], _PAIRS[1], {"c": "d"}),
        "put the same": lambda: glossaries.put(shared[1], _PAIRS[2], {"c": "d"}),
        "merge": lambda: glossaries.merge(shared[1], _PAIRS[2], {"e": "f"}),
        "drop": lambda: glossaries.delete_dictionary(shared[1], _PAIRS[2]),
        "rename": lambda: glossaries.rename(single, "renamed"),
    }
    may_fail = actions.keys() - {"list", "list of single ones", "renew", "put the same", "merge", "rename"}

    def repeat(name: str) -> None:
        while any(done[each] < _TIMES for each in actions) and time.monotonic() < give_up:
            try:
                actions[name]()
                done[name] += 1
            except (NotFound, InvalidRequest) as error:
                if name not in may_fail:
                    errors[f"{name}: {error!r}"] += 1
            except Exception as error:  # noqa: BLE001 - the test names every other one
                errors[f"{name}: {error!r}"] += 1

    threads = [threading.Thread(target=repeat, args=(name,)) for name in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert all(done[name] >= _TIMES for name in actions)
    found = glossaries.all()
    assert {info.id for info in found} == {*shared, single}
    for info in found:
        pairs = [(each.source, each.target) for each in info.dictionaries]
        assert pairs
        assert len(pairs) == len(set(pairs))
        assert all(glossaries.entries(info.id, pair).entries for pair in pairs)
    assert store.all() == []
    store.close()


def test_a_glossary_that_cannot_be_stored_whole_is_not_stored(store: GlossaryStore) -> None:
    glossaries = MultilingualGlossaries(store)
    with pytest.raises(InvalidRequest):
        glossaries.create("two", {_PAIRS[0]: {"a": "b"}, _PAIRS[1]: {"": "b"}})
    assert not glossaries.all()
    assert not store.all()
    store.close()
