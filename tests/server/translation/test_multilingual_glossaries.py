import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from server.interface.errors import InvalidRequest, NotFound
from server.translation.glossary_store import GlossaryStore
from server.translation.multilingual_glossaries import MultilingualGlossaries

_PAIRS = [("en", "de"), ("de", "en"), ("en", "fr")]
_SECONDS = 1.0


@pytest.fixture(params=[None, "glossaries.sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> GlossaryStore:
    return GlossaryStore(None if request.param is None else tmp_path / request.param)


def test_changes_at_once_leave_every_glossary_whole(store: GlossaryStore) -> None:
    """A list was 404 while a glossary was deleted, and a dictionary for a deleted glossary an `IntegrityError`."""
    glossaries = MultilingualGlossaries(store)
    shared = [glossaries.create("shared", {_PAIRS[0]: {"a": "b"}}).id for _ in range(2)]
    single = store.create("single", *_PAIRS[0], {"a": "b"}).id
    give_up = time.monotonic() + _SECONDS
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
        while time.monotonic() < give_up:
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
    assert done.keys() == actions.keys()
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
