"""What a server cannot take is refused before it is read."""

from fastapi import Request

from server.http.state import server_state


async def check_room(request: Request) -> None:
    """A dependency of routes that translate: raises `QueueFull` or `Draining` where nothing could be taken."""
    server_state(request).check_room()
