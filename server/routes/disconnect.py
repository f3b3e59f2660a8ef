"""Work that ends when nobody waits for it any more."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from fastapi import Request

from server.errors import ClientGone

Result = TypeVar("Result")


async def unless_disconnected(request: Request, work: Coroutine[None, None, Result]) -> Result:
    """What `work` returns. It is cancelled, and `ClientGone` raised, when the client closes the connection.

    The request's body must have been read: what is left to receive is the end of the connection.
    """
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_wait_for_disconnect(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        raise ClientGone("the client closed the connection before its answer was ready")
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
