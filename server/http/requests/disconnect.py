"""Cancellation of work whose client has disconnected."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from fastapi import Request

from server.interface.errors import ClientGone

Result = TypeVar("Result")


async def unless_disconnected(request: Request, work: Coroutine[None, None, Result]) -> Result:
    """Return the result of `work`. Cancels it and raises `ClientGone` if the client closes the connection.

    The request's body must have been read, so that only the end of the connection is left to receive.
    """
    task = asyncio.current_task()
    assert task is not None, "routes run in tasks"
    is_gone = False

    async def watch() -> None:
        nonlocal is_gone
        while (await request.receive())["type"] != "http.disconnect":
            pass
        is_gone = True
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if is_gone and not task.uncancel():  # no other cancellation is pending
            raise ClientGone("the client closed the connection before the response was ready") from None
        raise
    finally:
        watcher.cancel()
