import asyncio

import pytest
from fastapi import Request
from starlette.types import Message

from server.http.requests.disconnect import unless_disconnected
from server.interface.errors import ClientGone
from tests.fakes.event_loop import in_event_loop


class _Work:
    """Work that ends when it may, and notes that it was cancelled."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.was_cancelled = False

    async def run(self) -> str:
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return "done"


def _request(messages: "asyncio.Queue[Message]") -> Request:
    return Request({"type": "http", "headers": []}, messages.get)


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@in_event_loop
async def test_work_is_cancelled_when_any_server_reports_the_end_of_the_connection() -> None:
    messages: asyncio.Queue[Message] = asyncio.Queue()
    work = _Work()
    task = asyncio.create_task(unless_disconnected(_request(messages), work.run()))
    messages.put_nowait({"type": "http.request"})
    await _settle()
    assert not task.done()
    messages.put_nowait({"type": "http.disconnect"})
    with pytest.raises(ClientGone):
        await task
    assert work.was_cancelled


@in_event_loop
async def test_work_for_a_lost_connection_is_cancelled_at_once() -> None:
    messages: asyncio.Queue[Message] = asyncio.Queue()
    messages.put_nowait({"type": "http.disconnect"})
    work = _Work()
    with pytest.raises(ClientGone):
        await unless_disconnected(_request(messages), work.run())
    assert work.was_cancelled


@pytest.mark.parametrize("is_lost_too", [False, True])
@in_event_loop
async def test_another_cancellation_is_passed_on(is_lost_too: bool) -> None:
    messages: asyncio.Queue[Message] = asyncio.Queue()
    work = _Work()
    task = asyncio.create_task(unless_disconnected(_request(messages), work.run()))
    await _settle()
    if is_lost_too:
        messages.put_nowait({"type": "http.disconnect"})
        await asyncio.sleep(0)  # the message is taken in the next iteration
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.was_cancelled
