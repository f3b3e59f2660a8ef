"""Cancellation of work whose client has disconnected."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Protocol, TypeVar

from fastapi import Request

from server.interface.errors import ClientGone

Result = TypeVar("Result")


_GONE = "the client closed the connection before the response was ready"
CONNECTION = "connection"  # in the state of a scope: the connection, if it reports its loss


class Connection(Protocol):
    """A connection that reports its loss."""

    is_lost: bool

    def call_on_loss(self, on_loss: Callable[[], None] | None) -> None:
        """Call a function when the connection is lost. None: no function any more."""


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

    connection: Connection | None = request.scope.get("state", {}).get(CONNECTION)
    watcher = None
    if connection is None:
        watcher = asyncio.create_task(_watch(request, cancel))
    elif connection.is_lost:
        work.close()
        raise ClientGone(_GONE)
    else:  # a task for each request would cost more time than reading its fields
        connection.call_on_loss(cancel)
    try:
        return await work
    except asyncio.CancelledError:
        if is_gone and not task.uncancel():  # no other cancellation is pending
            raise ClientGone(_GONE) from None
        raise
    finally:
        if connection is not None:
            connection.call_on_loss(None)
        if watcher is not None:
            watcher.cancel()


async def _watch(request: Request, cancel: Callable[[], None]) -> None:
    """Wait for the end of the connection as every ASGI server reports it."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    cancel()
