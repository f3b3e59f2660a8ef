import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.middleware.recorder import RequestRecorder
from server.http.responses.errors import ErrorFormats
from server.http.state import ServerState
from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.translation.types import Phases, TokenCounts, Translation, TranslationResult

_RESULT = TranslationResult(
    [Translation("Tee.", 3, 4, FinishReason.STOP, float("nan"))], Phases(), TokenCounts.of([(3, 4)]), num_splits=0
)


async def _recorded(app: ASGIApp, metrics: Metrics, scope: Scope) -> ServerState:
    async def ignore(*_: object) -> Any:  # noqa: ANN401 - a message
        return {}

    server = ServerState(Settings(), metrics)
    await RequestRecorder(app, server, ErrorFormats({}))(scope, ignore, ignore)
    return server


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, "ok"),
        (422, "invalid"),
        (429, "rejected"),
        (499, "cancelled"),
        (500, "error"),
        (502, "error"),
        (503, "rejected"),
        (504, "timeout"),
    ],
)
def test_the_outcome_of_a_request_follows_from_its_status(status: int, outcome: str) -> None:
    metrics = Metrics()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["record"].model = "en-de"
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    server = asyncio.run(_recorded(answer, metrics, {"type": "http", "method": "GET", "path": "/", "headers": []}))
    assert f'outcome="{outcome}",status="{status}"}} 1.0' in metrics.exposition().decode()
    assert server.activity.models["en-de"].rejected == (outcome == "rejected")


def test_a_finished_request_keeps_no_result() -> None:
    """The scope lives as long as its connection is idle, and then in a cycle."""
    scope: MutableMapping[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": []}
    metrics = Metrics()

    async def answer(scope: MutableMapping[str, Any], *_: object) -> None:
        scope["state"]["record"].result = _RESULT

    asyncio.run(_recorded(answer, metrics, scope))
    assert scope["state"]["record"].result is None
    assert b"kvasir_source_tokens_count 1.0" in metrics.exposition()
