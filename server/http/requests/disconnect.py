"""Cancellation of work whose client has disconnected."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, TypeVar

from fastapi import Request

from server.interface.errors import ClientGone

Result = TypeVar("Result")

CONNECTION: Final = "connection"
"""Key of a scope's state: the `LossReport` of the connection, if the server has one."""

_GONE = "the client closed the connection before the response was ready"


class LossReport:
    """Whether a connection is lost, and the function that the request in progress wants to be called then."""

    is_lost = False
    on_loss: Callable[[], None] | None = None

    def report(self) -> None:
        """Note that the connection is lost."""
        self.is_lost = True
        if self.on_loss is not None:
            self.on_loss()


async def unless_disconnected(request: Request, work: Coroutine[None, None, Result]) -> Result:
    """Return the result of `work`. Cancels it and raises `ClientGone` if the client closes the connection.

    The request's body must have been read, so that only the end of the connection is left to receive.
    """
    task = asyncio.current_task()
    assert task is not None, "routes run in tasks"
    is_gone = False

    def cancel() -> None:
        nonlocal is_gone
        is_gone = True
        task.cancel()

    connection: LossReport | None = request.scope.get("state", {}).get(CONNECTION)
    watcher = None
    if connection is None:
        watcher = asyncio.create_task(_watch(request, cancel))
    elif connection.is_lost:
        work.close()
        raise ClientGone(_GONE)
    else:  # a task for each request would cost more time than reading its fields
        connection.on_loss = cancel
    try:
        return await work
    except asyncio.CancelledError:
        if is_gone and not task.uncancel():  # no other cancellation is pending
            raise ClientGone(_GONE) from None
        raise
    finally:
        if connection is not None:
            connection.on_loss = None
        if watcher is not None:
            watcher.cancel()


async def _watch(request: Request, cancel: Callable[[], None]) -> None:
    """Wait for the end of the connection as every ASGI server reports it."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    cancel()
