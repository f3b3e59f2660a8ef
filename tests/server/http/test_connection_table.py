import logging

import pytest

from server.http.connection_table import ConnectionTable


class _Connection:
    def __init__(self) -> None:
        self.is_closed = False

    def close_idle(self) -> None:
        self.is_closed = True


class _Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def _added(table: ConnectionTable, number: int, *, is_idle: bool) -> list[_Connection]:
    made = [_Connection() for _ in range(number)]
    for connection in made:
        assert table.add(connection) == (True, False)
        table.set_idle(connection, is_idle=is_idle)
    return made


def test_no_connection_is_closed_before_the_limit() -> None:
    table = ConnectionTable(3, num_reserved=1)
    made = _added(table, 3, is_idle=True)
    assert not any(connection.is_closed for connection in made)
    assert (len(table), table.num_idle) == (3, 3)


def test_one_more_closes_the_one_that_was_idle_for_longest() -> None:
    table = ConnectionTable(3, num_reserved=1)
    first, second, third = _added(table, 3, is_idle=True)
    table.set_idle(first, is_idle=False)  # it had a request
    table.set_idle(first, is_idle=True)
    _added(table, 1, is_idle=True)
    assert [first.is_closed, second.is_closed, third.is_closed] == [False, True, False]
    assert len(table) == 3


def test_connections_that_work_are_never_closed_and_the_excess_is_limited() -> None:
    table = ConnectionTable(2, num_reserved=2)
    working = _added(table, 2, is_idle=False)
    assert [table.add(_Connection()) for _ in range(3)] == [(True, True), (True, True), (False, True)]
    assert not any(connection.is_closed for connection in working)
    assert len(table) == 4
    table.remove(working[0])
    assert table.add(_Connection()) == (True, True)


def _excess(table: ConnectionTable, number: int) -> list[_Connection]:
    made = [_Connection() for _ in range(number)]
    for connection in made:
        assert table.add(connection) == (True, True)
        table.set_idle(connection, is_idle=True)
    return made


def test_probes_of_a_full_server_close_each_other_only_beyond_the_reserve() -> None:
    table = ConnectionTable(2, num_reserved=2)
    working = _added(table, 2, is_idle=False)
    first, second = _excess(table, 2)
    assert not first.is_closed
    table.set_idle(first, is_idle=False)  # it has a request
    _excess(table, 1)
    assert [first.is_closed, second.is_closed] == [False, True]
    assert not any(connection.is_closed for connection in working)
    assert (len(table), table.num_idle) == (4, 1)


def test_idle_probes_take_no_place_of_other_connections() -> None:
    table = ConnectionTable(2, num_reserved=2)
    working = _added(table, 2, is_idle=False)
    first, second = _excess(table, 2)
    table.remove(working[0])
    assert table.add(_Connection()) == (True, False)
    assert [first.is_closed, second.is_closed] == [True, True]
    assert len(table) == 2


def test_a_connection_that_is_closed_is_not_idle_again() -> None:
    table = ConnectionTable(2, num_reserved=1)
    [connection] = _added(table, 1, is_idle=True)
    table.remove(connection)
    table.set_idle(connection, is_idle=True)
    assert (len(table), table.num_idle) == (0, 0)


def test_closed_connections_are_counted_in_one_line_for_five_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = _Clock()
    table = ConnectionTable(1, 1, clock)
    _added(table, 3, is_idle=True)
    clock.now += 4.9
    _added(table, 1, is_idle=True)
    assert [vars(record)["closed"] for record in caplog.records] == [1]
    clock.now += 0.1
    _added(table, 1, is_idle=True)
    assert [vars(record)["closed"] for record in caplog.records] == [1, 3]
