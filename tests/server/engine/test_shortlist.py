"""Lists of a shortlist, and the lists of the rows of a cache."""

import numpy as np
import pytest
from numpy.typing import NDArray

from bundle.shortlist import Shortlist
from server.engine.kv_cache import CacheShapes, KVCache
from server.engine.shortlist import ListedTokens, TokenLists


def test_a_list_has_the_first_tokens_those_of_the_source_and_a_multiple_of_eight() -> None:
    shortlist = Shortlist.of_lists(4, [[], [59, 3, 40], [41], *([[]] * 5), [40, 42]])
    listed = ListedTokens(shortlist, 60, (30,), is_shared=False).of(np.array([1, 8, 1, 49], np.int32))
    expected = {0, 1, 2, 3, 30, 40, 59, 42}
    assert expected < set(listed.tolist())
    # The others are the first ones that are not listed.
    assert set(listed.tolist()) - expected == set(range(4, 28))
    assert listed.tolist() == sorted(listed.tolist())
    assert listed.dtype == np.int32
    shared = ListedTokens(shortlist, 60, (30,), is_shared=True).of(np.array([1, 8, 1, 49], np.int32))
    assert 49 in shared
    assert 49 not in listed
    assert shared.size == 32


def test_a_list_never_exceeds_the_vocabulary() -> None:
    shortlist = Shortlist.of_lists(2**63, [[1]])
    assert ListedTokens(shortlist, 13, (), is_shared=True).of(np.array([0, 12])).tolist() == list(range(13))


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("num_tokens", [40, 64, 997])
def test_native_lists_are_those_of_numpy(num_tokens: int, is_shared: bool) -> None:
    random = np.random.default_rng(num_tokens)
    lists = [random.integers(0, num_tokens, random.integers(0, 12)).tolist() for _ in range(50)]
    for num_first in (0, 3, num_tokens):
        always = (num_tokens - 1, 5)
        listed = ListedTokens(Shortlist.of_lists(num_first, lists), num_tokens, always, is_shared=is_shared)
        for source_len in (1, 2, 20):
            # Some tokens have no list, and some are no tokens of the target.
            source = random.integers(0, num_tokens + 30, source_len).astype(np.int32)
            native, expected = listed.of(source), listed._of_in_numpy(source)
            assert native.dtype == expected.dtype
            assert native.tolist() == expected.tolist()


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
