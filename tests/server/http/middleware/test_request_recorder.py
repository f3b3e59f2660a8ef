import asyncio
from collections.abc import MutableMapping
from typing import Any

from server.http.middleware.request_recorder import RequestRecorder
from server.http.responses.error_formats import ErrorFormats
from server.http.state import ServerState
from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.translation.token_counts import TokenCounts
from server.translation.types import Phases, Translation, TranslationResult

_RESULT = TranslationResult(
    [Translation("Tee.", 3, 4, FinishReason.STOP, float("nan"))], Phases(), TokenCounts.of([(3, 4)]), num_splits=0
)


def test_a_finished_request_keeps_no_result() -> None:
    """The scope lives as long as its connection is idle, and then in a cycle."""
    scope: MutableMapping[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": []}
    metrics = Metrics()

    async def answer(scope: MutableMapping[str, Any], *_: object) -> None:
        scope["state"]["record"].result = _RESULT

    async def ignore(*_: object) -> Any:  # noqa: ANN401 - a message
        return {}

    async def run() -> None:
        server = ServerState(Settings(), metrics)
        await RequestRecorder(answer, server, ErrorFormats({}))(scope, ignore, ignore)

    asyncio.run(run())
    assert scope["state"]["record"].result is None
    assert b"kvasir_source_tokens_count 1.0" in metrics.exposition()
