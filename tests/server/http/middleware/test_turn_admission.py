"""Rejections of late requests."""

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from server.http.middleware.turn_admission import TurnAdmission
from server.http.protocols.registry import PROTOCOLS, error_formats
from server.http.request_turns import IS_LATE


def _answer(state: dict[str, object]) -> list[Any]:
    """Return what is sent for a translation whose scope has this state, or the name of the application."""
    sent: list[Any] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        sent.append("application")

    async def receive() -> Message:
        raise AssertionError("a late request is not read")

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/translate", "headers": [], "state": state}
    admission = TurnAdmission(application, error_formats(list(PROTOCOLS.values())))
    asyncio.run(admission(scope, receive, send))
    return sent


def test_a_late_request_is_rejected_unread() -> None:
    start, body = _answer({IS_LATE: True})
    assert start["status"] == 429
    assert (b"retry-after", b"1") in start["headers"]
    assert b"queue_full" in body["body"]
    assert b"faster than the server begins them" in body["body"]


def test_other_requests_pass() -> None:
    assert _answer({}) == ["application"]
