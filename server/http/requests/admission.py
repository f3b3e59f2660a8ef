"""Admission check of routes that translate, before the body is parsed."""

from fastapi import Request

from server.http.state import server_state


async def check_admission(request: Request) -> None:
    """Raise `QueueFull` or `Draining` if no model would accept a request now. A dependency of routes."""
    server_state(request).check_admission()
