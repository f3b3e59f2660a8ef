import multiprocessing
from multiprocessing.connection import Connection

import pytest

from server.workers.message_pipe import MessagePipe

LONG = b"a" * 1_000_000  # more than a pipe holds


@pytest.fixture
def ends() -> tuple[Connection, Connection]:
    return multiprocessing.Pipe(duplex=False)


def _received(reader: Connection) -> list[object]:
    found = []
    while reader.poll(60) and (message := reader.recv()) is not None:
        found.append(message)
    return found


def test_messages_arrive_in_their_order_and_the_end_behind_them(ends: tuple[Connection, Connection]) -> None:
    reader, writer = ends
    pipe = MessagePipe(writer, "pipe")
    messages: list[object] = [1, LONG, 2, (3, LONG), *range(1000)]
    for message in messages:
        pipe.send(message)  # the other end does not read yet
    pipe.end()
    pipe.send("late")
    assert _received(reader) == messages
    pipe.join()
    assert not reader.poll(0)


def test_short_messages_do_not_wait_for_the_thread(ends: tuple[Connection, Connection]) -> None:
    reader, writer = ends
    pipe = MessagePipe(writer, "pipe")
    for _ in range(2):
        pipe.send("short")
        assert reader.poll(0)
        assert reader.recv() == "short"
    pipe.send(LONG)
    assert reader.recv() == LONG
    pipe.end()
    assert _received(reader) == []
    pipe.join()


def test_messages_to_a_process_that_is_gone_are_discarded(ends: tuple[Connection, Connection]) -> None:
    reader, writer = ends
    pipe = MessagePipe(writer, "pipe")
    reader.close()
    for message in ("short", LONG, "short"):
        pipe.send(message)
    pipe.end()
    pipe.join()
