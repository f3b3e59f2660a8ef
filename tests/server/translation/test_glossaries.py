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
from server.translation.glossaries import MAX_GLOSSARIES, GlossaryStore

EN_DE = ("en", "de")


def test_a_glossary_is_there_again_when_the_file_is_opened_again(tmp_path: Path) -> None:
    store = GlossaryStore(tmp_path / "glossaries.sqlite")
    made = store.create("Houses", {EN_DE: {"house": "Gebäude", "a": "b"}})
    store.close()
    again = GlossaryStore(tmp_path / "glossaries.sqlite")
    assert again.all() == [made] == [again.info(made.id)]
    assert made.only.num_entries == 2
    assert list(again.dictionary(made.only.id).entries) == ["house", "a"]
    again.close()


def test_a_file_of_an_earlier_version_has_glossaries_without_a_list_of_dictionaries(tmp_path: Path) -> None:
    path = tmp_path / "glossaries.sqlite"
    store = GlossaryStore(path)
    made = store.create("Houses", {EN_DE: {"house": "Gebäude"}})
    store.close()
    with sqlite3.connect(path) as file:
        file.execute("DELETE FROM members")
        file.execute("DELETE FROM multilingual")
    file.close()
    for _ in range(2):
        store = GlossaryStore(path)
        [found] = store.all()
        assert (found.id, found.name, found.dictionaries) == (made.only.id, "Houses", made.dictionaries)
        store.close()


def test_a_glossary_that_was_deleted_is_gone(tmp_path: Path) -> None:
    store = GlossaryStore(None)
    made = store.create("Houses", {EN_DE: {"house": "Gebäude"}})
    store.delete(made.id)
    assert store.all() == []
    for ask, its_id in ((store.info, made.id), (store.dictionary, made.only.id), (store.delete, made.id)):
        with pytest.raises(NotFound):
            ask(its_id)
    store.close()


def test_names_and_numbers_have_limits() -> None:
    store = GlossaryStore(None)
    for name in ("", " ", "x" * 1025):
        with pytest.raises(InvalidRequest, match="`name` must have"):
            store.create(name, {EN_DE: {"a": "b"}})
    for number in range(MAX_GLOSSARIES):
        store.create(str(number), {EN_DE: {"a": "b"}})
    with pytest.raises(InvalidRequest, match="delete some"):
        store.create("one more", {EN_DE: {"a": "b"}})
    store.close()


def test_threads_may_share_a_store() -> None:
    store = GlossaryStore(None)
    threads = [threading.Thread(target=store.create, args=(str(n), {EN_DE: {"a": "b"}})) for n in range(20)]
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
    first = store.create("one", {EN_DE: {f"a{number:03}": "\u00e4" * 48 for number in range(6)}})
    with pytest.raises(InvalidRequest, match="would have 1100 of 1000 bytes; delete some glossaries"):
        store.create("two", {EN_DE: {"x" * 100: "y" * 150, "z" * 100: "y" * 150}})
    other.create("two", {EN_DE: {"x" * 200: "y" * 200}})
    with pytest.raises(InvalidRequest, match="1002 of 1000 bytes"):
        store.create("three", {EN_DE: {"a": "b"}})
    other.delete(first.id)
    store.create("three", {EN_DE: {"a": "b"}})
    store.close()
    other.close()


def test_a_dictionary_that_is_refused_leaves_the_one_before() -> None:
    store = GlossaryStore(None, max_bytes=100)
    made = store.create("one", {EN_DE: {"a": "b"}})
    with pytest.raises(InvalidRequest, match="would have 101 of 100 bytes"):
        store.put(made.id, EN_DE, {"c": "d" * 100})
    assert store.info(made.id) == made
    assert dict(store.dictionary(made.only.id).entries) == {"a": "b"}
    store.close()


def test_a_locked_file_is_an_error_at_once(tmp_path: Path) -> None:
    path = tmp_path / "glossaries.sqlite"
    store = GlossaryStore(path)
    made = store.create("one", {EN_DE: {"a": "b"}})
    store._ready.clear()
    locking = sqlite3.connect(path)
    locking.execute("BEGIN EXCLUSIVE")
    begun = time.monotonic()
    for ask in (store.all, lambda: store.dictionary(made.only.id), lambda: store.create("two", {EN_DE: {"a": "b"}})):
        with pytest.raises(StoreBusy, match="locked; retry later"):
            ask()
    assert time.monotonic() - begun < 5.0  # how long SQLite waits for one lock unless it is told otherwise
    locking.close()
    assert store.all() == [made]
    store.close()


def test_glossaries_without_a_file_are_in_the_folder_and_leave_nothing_there(tmp_path: Path) -> None:
    store = GlossaryStore(None, folder=tmp_path)
    made = store.create("one", {EN_DE: {f"{number}" * 50: "b" * 200 for number in range(1000, 5000)}})
    assert list(tmp_path.iterdir()) == []
    store._ready.clear()
    assert len(store.dictionary(made.only.id).entries) == 4000
    store.close()


def test_glossaries_ready_for_use_have_a_limit_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossaries_module, "_READY_BYTES", 100_000)
    store = GlossaryStore(None)
    for name in "abcdefgh":
        made = store.create(name, {EN_DE: {f"{name}{number}" + "x" * 90: "y" * 195 for number in range(30)}})
        store.dictionary(made.only.id)
    assert len(store._ready) == 2
    store.close()


def test_a_glossary_deleted_while_it_is_prepared_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was kept ready for use, and so was used for as long as the server ran."""
    store = GlossaryStore(None)
    has_read, may_go_on = threading.Event(), threading.Event()
    made = store.create("Houses", {EN_DE: {"house": "Gebäude"}})
    store._ready.clear()

    def prepare_slowly(entries: dict[str, str]) -> Glossary:
        has_read.set()
        assert may_go_on.wait(60)
        return Glossary(entries)

    monkeypatch.setattr(glossaries_module, "Glossary", prepare_slowly)
    reading = threading.Thread(target=store.dictionary, args=(made.only.id,))
    reading.start()
    assert has_read.wait(60)
    store.delete(made.id)
    may_go_on.set()
    reading.join()
    with pytest.raises(NotFound):
        store.dictionary(made.only.id)
    store.close()


def test_a_glossary_that_another_server_deletes_is_gone(tmp_path: Path) -> None:
    store, other = GlossaryStore(tmp_path / "a.sqlite"), GlossaryStore(tmp_path / "a.sqlite")
    made = store.create("Houses", {EN_DE: {"house": "Gebäude"}})
    assert store.dictionary(made.only.id).entries
    other.delete(made.id)
    with pytest.raises(NotFound):
        store.dictionary(made.only.id)
    store.close()
    other.close()


_PAIRS = [EN_DE, ("de", "en"), ("en", "fr")]
_TIMES = 5  # that each action must succeed
_PATIENCE_SECONDS = 60.0


@pytest.fixture(params=[None, "glossaries.sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> GlossaryStore:
    return GlossaryStore(None if request.param is None else tmp_path / request.param)


def test_changes_at_once_leave_every_glossary_whole(store: GlossaryStore) -> None:
    """A list was 404 while a glossary was deleted, and a dictionary for a deleted glossary an `IntegrityError`."""
    shared = [store.create("shared", {_PAIRS[0]: {"a": "b"}}).id for _ in range(2)]
    single = store.create("single", {EN_DE: {"a": "b"}}).id
    give_up = time.monotonic() + _PATIENCE_SECONDS
    errors: Counter[str] = Counter()
    done: Counter[str] = Counter()

    def renew() -> None:
        store.delete(shared[0])
        shared[0] = store.create("shared", {pair: {"a": "b"} for pair in _PAIRS[:2]}).id

    actions: dict[str, Callable[[], object]] = {
        "list": store.all,
        "renew": renew,
        "info": lambda: store.info(shared[0]),
        "entries": lambda: store.dictionary(store.info(shared[0]).dictionary(EN_DE).id),
        "put": lambda: store.put(shared[0], _PAIRS[1], {"c": "d"}),
        "put the same": lambda: store.put(shared[1], _PAIRS[2], {"c": "d"}),
        "merge": lambda: store.put(shared[1], _PAIRS[2], {"e": "f"}, keeps=True),
        "drop": lambda: store.delete_dictionary(shared[1], _PAIRS[2]),
        "rename": lambda: store.rename(single, "renamed"),
    }
    may_fail = actions.keys() - {"list", "renew", "put the same", "merge", "rename"}

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
    found = store.all()
    assert {info.id for info in found} == {*shared, single}
    for info in found:
        pairs = [(each.source, each.target) for each in info.dictionaries]
        assert pairs
        assert len(pairs) == len(set(pairs))
        assert all(store.dictionary(each.id).entries for each in info.dictionaries)
    store.close()


def test_a_glossary_that_cannot_be_stored_whole_is_not_stored(store: GlossaryStore) -> None:
    with pytest.raises(InvalidRequest):
        store.create("two", {_PAIRS[0]: {"a": "b"}, _PAIRS[1]: {"": "b"}})
    assert not store.all()
    store.close()
