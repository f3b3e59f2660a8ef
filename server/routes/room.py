"""Overload is refused before a request is read."""

from fastapi import Request

from server.state import server_state


async def check_room(request: Request) -> None:
    """A dependency of routes that translate: raises `QueueFull` where no model could take what is asked."""
    server_state(request).check_room()
