import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from server.http.middleware.gate import Gate, unread_share
from server.http.middleware.pacing import ResponsePacing
from server.http.responses.errors import ErrorFormats
from server.http.state import RequestRecord, UnreadBytes
from server.interface.errors import QueueFull

BODY = bytes(range(256)) * 2048  # 512 KB


def test_a_client_may_use_its_share_and_all_together_the_limit() -> None:
    unread = UnreadBytes(100)
    unread.add("a", 60)  # a first response may be larger than the share
    with pytest.raises(QueueFull, match="60 of 25 bytes are taken by responses that are not read yet of this client"):
        unread.add("a", 1)
    unread.add("b", 40)
    with pytest.raises(QueueFull, match="100 of 100 bytes are taken by responses that are not read yet of all clients"):
        unread.check("c")
    unread.remove("a", 60)
    with unread.holding("a", 10):
        assert unread.total == 50
    assert unread.total == 40


class _Connection:
    """One request and what is sent in answer. `gate` holds up every chunk of a body."""

    def __init__(self, unread: UnreadBytes, method: str = "GET") -> None:
        self.gate = asyncio.Event()
        self.sent: list[Message] = []
        self.is_handled = False  # by the application
        self._unread = unread
        self._scope: Scope = {
            "type": "http",
            "method": method,
            "path": "/v1/translate",
            "headers": [],
            "state": {"record": RequestRecord("id", client="a")},
        }

    async def respond(self) -> None:
        async def app(_: Scope, __: Receive, send: Send) -> None:
            self.is_handled = True
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": BODY})

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.sent.append(message)
            if message["type"] == "http.response.body":
                await self.gate.wait()

        formats = ErrorFormats({})
        gate = Gate(app, [unread_share(self._unread)], formats)
        await ResponsePacing(gate, self._unread, formats)(self._scope, receive, send)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


def test_a_large_body_is_sent_in_chunks_and_counted_until_it_has_left() -> None:
    async def scenario() -> None:
        unread = UnreadBytes(1_000_000)
        connection = _Connection(unread)
        sending = asyncio.create_task(connection.respond())
        await asyncio.sleep(0)
        assert unread.total == len(BODY)
        assert len(connection.body) < len(BODY)
        connection.gate.set()
        await sending
        assert connection.body == BODY
        assert [message.get("more_body") for message in connection.sent[1:]] == [True] * 7 + [False]
        assert unread.total == 0

    asyncio.run(scenario())


def test_a_response_over_the_limit_is_replaced_and_further_requests_are_rejected() -> None:
    async def scenario() -> None:
        unread = UnreadBytes(1_000_000)
        first, second, third = _Connection(unread), _Connection(unread), _Connection(unread, "POST")
        sending = asyncio.create_task(first.respond())
        await asyncio.sleep(0)
        second.gate.set()
        third.gate.set()
        await second.respond()
        await third.respond()
        assert (first.status, second.status, third.status) == (200, 429, 429)
        assert (second.is_handled, third.is_handled) == (True, False)  # what is posted takes work
        assert b"queue_full" in second.body
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert unread.total == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(("version", "num_parts"), [("1.0", 1), ("1.1", 2)])
def test_a_stream_over_http_1_0_is_sent_when_it_is_complete(version: str, num_parts: int) -> None:
    sent: list[Message] = []

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        for part in (b"one, ", b"two"):
            await send({"type": "http.response.body", "body": part, "more_body": part != b"two"})

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    state = {"record": RequestRecord("id")}
    scope = {"type": "http", "http_version": version, "method": "GET", "path": "/", "headers": [], "state": state}
    asyncio.run(ResponsePacing(app, UnreadBytes(100), ErrorFormats({}))(scope, receive, send))
    assert b"".join(message["body"] for message in sent[1:]) == b"one, two"
    assert len(sent) == 1 + num_parts
    assert ((b"content-length", b"8") in sent[0]["headers"]) == (version == "1.0")
