import numpy as np

from kernels.cache_moves import SOURCE_PLACE_UNIT
from server.engine.kv_cache import SourceRows


def test_rows_with_their_own_sources_have_lengths_as_places() -> None:
    lengths = np.array([3, 5, 7], np.int32)
    sources = SourceRows(lengths, is_shared=False)
    assert sources.begin(1, np.array([True, True, False])) == 1
    lengths[2] = lengths[1]
    sources.follow(np.array([1]), np.array([2]))
    assert sources.rows.tolist() == [0, 1, 2]
    assert sources.places.tolist() == [3, 5, 5]


def test_a_row_begins_with_the_first_source_that_no_other_live_row_reads() -> None:
    sources = SourceRows(np.full(4, 9, np.int32), is_shared=True)
    is_live = np.array([False, False, False, True])
    assert sources.begin(3, is_live) == 0
    is_live[1] = True
    assert sources.begin(1, is_live) == 1
    is_live[3] = False
    is_live[0] = True
    assert sources.begin(0, is_live) == 0


def test_the_place_of_a_source_leads_from_the_row_to_it_in_both_directions() -> None:
    lengths = np.array([9, 9, 65535, 9], np.int32)
    sources = SourceRows(lengths, is_shared=True)
    sources.rows[2] = 1
    lengths[[0, 3]] = lengths[2]
    sources.follow(np.array([2, 2]), np.array([0, 3]))
    assert sources.rows.tolist() == [1, 1, 1, 1]
    assert [divmod(place, SOURCE_PLACE_UNIT) for place in sources.places[[0, 3]].tolist()] == [(1, 65535), (-2, 65535)]
    assert ((sources.places[[0, 3]] - 1) >> 16).tolist() == [1, -2]
