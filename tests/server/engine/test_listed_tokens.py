import numpy as np
import pytest

from bundle.shortlist import Shortlist
from server.engine.shortlist import ListedTokens


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
