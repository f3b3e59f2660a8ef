import asyncio
import socket

import pytest
import uvicorn

from server.cli import serve
from server.http.app import create_app
from server.http.connection_table import ConnectionTable
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator


def test_the_api_is_described_before_the_first_request(echo: EchoGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(Settings(), [echo])
    described: list[bool] = []

    async def startup(_: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        described.append(app.openapi_schema is not None)

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    asyncio.run(serve._DrainingServer(uvicorn.Config(app), app, ConnectionTable(1, 1), certificate=None).startup())
    assert described == [True]
