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
        assert table.add(connection)
        table.set_idle(connection, is_idle=is_idle)
    return made


def test_no_connection_is_closed_before_the_limit() -> None:
    table = ConnectionTable(3, num_reserved=1)
    made = _added(table, 4, is_idle=True)
    assert not any(connection.is_closed for connection in made)


def test_one_more_closes_the_one_that_was_idle_for_longest() -> None:
    table = ConnectionTable(2, num_reserved=1)
    first, second, third = _added(table, 3, is_idle=True)
    table.set_idle(first, is_idle=False)  # it had a request
    table.set_idle(first, is_idle=True)
    _added(table, 1, is_idle=True)
    assert [first.is_closed, second.is_closed, third.is_closed] == [False, True, False]


def test_connections_that_work_are_never_closed() -> None:
    table = ConnectionTable(2, num_reserved=2)
    working = _added(table, 4, is_idle=False)
    assert not table.add(_Connection())
    assert not any(connection.is_closed for connection in working)
    table.remove(working[0])
    assert table.add(_Connection())


def test_a_table_is_full_when_as_many_as_may_have_requests() -> None:
    table = ConnectionTable(2, num_reserved=2)
    waiting = _added(table, 2, is_idle=True)
    first, _ = _added(table, 2, is_idle=False)
    fullness = [table.is_full]
    table.set_idle(first, is_idle=True)
    fullness.append(table.is_full)
    table.set_idle(waiting[0], is_idle=False)
    fullness.append(table.is_full)
    table.remove(waiting[0])
    assert [*fullness, table.is_full] == [True, False, True, False]


def test_a_connection_that_is_closed_is_not_idle_again() -> None:
    table = ConnectionTable(1, num_reserved=0)
    [connection] = _added(table, 1, is_idle=True)
    table.remove(connection)
    table.set_idle(connection, is_idle=True)
    _added(table, 1, is_idle=False)
    assert not connection.is_closed
    assert table.is_full


def test_closed_connections_are_counted_in_one_line_for_five_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = _Clock()
    table = ConnectionTable(1, 0, clock)
    _added(table, 3, is_idle=True)
    clock.now += 4.9
    _added(table, 1, is_idle=True)
    assert [vars(record)["closed"] for record in caplog.records] == [1]
    clock.now += 0.1
    _added(table, 1, is_idle=True)
    assert [vars(record)["closed"] for record in caplog.records] == [1, 3]
