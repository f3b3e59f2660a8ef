import numpy as np
from numpy.typing import NDArray

from server.engine.kv_cache import CacheShapes, KVCache
from server.engine.shortlist import TokenLists


class Listed:
    """Lists the source itself."""

    def of(self, source: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the source."""
        return source


def _list(lists: TokenLists, cache: KVCache, row: int) -> list[int]:
    index = cache.list_of_row[row]
    return list(map(int, lists.lists[index, : lists.lengths[index]]))


def test_each_live_request_has_a_list_of_its_own() -> None:
    cache = KVCache(CacheShapes(1, 1, 1, 4, 4), 3)
    lists = TokenLists(Listed(), 8, cache)  # type: ignore[arg-type]
    cross = np.zeros((2, 1, 2, 1), np.float32)
    rows = []
    for owner, source in enumerate(([5, 6], [7], [1, 2, 3])):
        rows.append(cache.begin(owner, cross, 0))
        lists.assign(rows[-1], np.array(source, np.int32))
    assert [_list(lists, cache, row) for row in rows] == [[5, 6], [7], [1, 2, 3]]
    cache.release(np.array([rows[1]]))
    again = cache.begin(9, cross, 0)
    assert cache.list_of_row[again] < 0
    lists.assign(again, np.array([4, 4, 4, 4], np.int32))
    assert [_list(lists, cache, row) for row in (rows[0], again, rows[2])] == [[5, 6], [4, 4, 4, 4], [1, 2, 3]]
