from itertools import count

import pytest

from server.engine.runners.device.sessions import NOT_CAPTURED, Captures, bucket


@pytest.mark.parametrize(("rows", "expected"), [(1, 1), (2, 2), (3, 4), (64, 64), (65, 100), (100, 100)])
def test_the_rows_of_a_run_are_the_next_power_of_two_up_to_the_largest_number(rows: int, expected: int) -> None:
    assert bucket(rows, largest=100) == expected


def test_each_kind_of_run_has_a_graph_of_its_own() -> None:
    captures = Captures(count(1))
    ids = [captures.graph_id(kind) for kind in ((8, 0), (8, 1), (8, 0), (16, 0), (8, 1))]
    assert ids[0] == ids[2]
    assert ids[1] == ids[4]
    assert len(set(ids)) == captures.num_captured == 3


def test_two_runners_over_the_same_sessions_never_replay_graphs_of_each_other() -> None:
    ids = count(1)
    one, other = Captures(ids), Captures(ids)
    assert [one.graph_id("a"), other.graph_id("a"), one.graph_id("b"), other.graph_id("a")] == [1, 2, 3, 2]


def test_a_rare_kind_of_run_is_not_captured() -> None:
    captures = Captures(count(1), after=2)
    assert [captures.graph_id("often") for _ in range(4)] == [NOT_CAPTURED, NOT_CAPTURED, 1, 1]
    assert captures.graph_id("once") == NOT_CAPTURED


def test_the_number_of_captured_graphs_is_limited() -> None:
    captures = Captures(count(1), max_captures=2)
    assert [captures.graph_id(kind) for kind in "abca"] == [1, 2, NOT_CAPTURED, 1]


def test_without_a_gpu_nothing_is_captured() -> None:
    captures = Captures(None)
    assert captures.graph_id("any") == NOT_CAPTURED
    assert not captures.num_captured
