import asyncio
from pathlib import Path

import pytest
from starlette.types import Message, Receive, Scope, Send

from server.http.middleware.gate import Gate, Uploads
from server.http.responses.errors import ErrorFormats
from server.http.state import RequestRecord, ServerState
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator
from tests.fakes.event_loop import in_event_loop

PATH = "/v2/document"
PART: Message = {"type": "http.request", "more_body": True}
END: Message = {"type": "http.request"}


class _Upload:
    """One upload. `send` has the next part of its body read; `task` ends when it is rejected or interrupted."""

    def __init__(self, body: "asyncio.Queue[Message]", task: "asyncio.Task[None]") -> None:
        self.task, self._body = task, body

    @property
    def is_rejected(self) -> bool:
        return self.task.done()

    async def send(self, part: Message) -> None:
        self._body.put_nowait(part)
        await _settle()

    async def interrupt(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def _read(_: Scope, receive: Receive, __: Send) -> None:
    """Read a body, and go on."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.Event().wait()


class _Client:
    """Starts uploads to a server."""

    def __init__(self, server: ServerState) -> None:
        self.middleware = Gate(_read, [Uploads(server, [PATH])], ErrorFormats({}))
        self.sent: list[Message] = []
        self._uploads: list[_Upload] = []  # the event loop keeps no tasks

    async def upload(self, address: str = "a", length: bytes | None = None, path: str = PATH) -> _Upload:
        async def send(message: Message) -> None:
            self.sent.append(message)

        body: asyncio.Queue[Message] = asyncio.Queue()
        headers = [] if length is None else [(b"content-length", length)]
        state = {"record": RequestRecord("id", client=address)}
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "state": state}
        upload = _Upload(body, asyncio.create_task(self.middleware(scope, body.get, send)))
        self._uploads.append(upload)
        await _settle()
        return upload


def _client(echo: EchoGenerator, settings: Settings) -> _Client:
    server = ServerState(settings, Metrics())
    server.open([echo])
    return _Client(server)


@pytest.fixture
def with_keys(echo: EchoGenerator, tmp_path: Path) -> Settings:
    return Settings(api_keys=tmp_path / "keys.sqlite")


@in_event_loop
async def test_an_upload_without_a_key_counts_once_until_it_is_received_or_interrupted(
    echo: EchoGenerator, with_keys: Settings
) -> None:
    client = _client(echo, with_keys)
    uploads = [await client.upload() for _ in range(4)]
    for ended, part in zip(uploads[:2], (PART, END), strict=True):
        await ended.send(PART)
        assert (await client.upload()).is_rejected
        await ended.send(part)
        assert (await client.upload()).is_rejected == (part == PART)
        await ended.interrupt()
        assert (await client.upload()).is_rejected == (part == END)
    assert {message["status"] for message in client.sent if "status" in message} == {429}


@in_event_loop
async def test_uploads_without_a_key_are_limited_by_address_and_in_all(
    echo: EchoGenerator, with_keys: Settings
) -> None:
    client = _client(echo, with_keys)
    started = [(address, (await client.upload(address)).is_rejected) for address in "abcde" for _ in range(5)]
    assert [address for address, is_rejected in started if not is_rejected] == [*"aaaabbbbccccdddd"]


@in_event_loop
async def test_an_upload_counts_the_bytes_that_it_states_or_may_have(echo: EchoGenerator) -> None:
    client = _client(echo, Settings(max_file_megabytes=1, max_documents_megabytes=1))
    first = await client.upload(length=b"600000")
    assert (await client.upload(length=b"400001")).is_rejected
    second = await client.upload(length=b"400000")
    await first.send(PART)
    assert (await client.upload(length=b"600000")).is_rejected
    await first.send(END)
    assert (await client.upload()).is_rejected
    await (await client.upload(length=b"600000")).interrupt()
    await second.interrupt()
    assert not (await client.upload()).is_rejected


@in_event_loop
async def test_other_requests_are_no_uploads(echo: EchoGenerator, with_keys: Settings) -> None:
    client = _client(echo, with_keys)
    assert not any([(await client.upload(path="/v2/translate")).is_rejected for _ in range(20)])
