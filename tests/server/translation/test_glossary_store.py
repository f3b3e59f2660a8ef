import threading
from pathlib import Path

import pytest

from server.interface.errors import InvalidRequest, NotFound
from server.translation.glossary_store import MAX_GLOSSARIES, GlossaryStore


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
