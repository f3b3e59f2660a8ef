"""Delivery of results to the event loops of their calls."""

import asyncio

from server.engine.stream_tracker import StreamUpdate
from server.interface.request import Completion


def settle(settled: list[tuple[asyncio.Future[Completion], Completion]]) -> None:
    """Set the results of futures that still wait, and send the whole answer to streaming requests."""
    for future, completion in settled:
        if not future.done():
            future.set_result(completion)
            if completion.request.on_progress is not None and completion.hypotheses:
                completion.request.on_progress(completion.hypotheses[0].token_ids, True)


def stream(updates: list[StreamUpdate]) -> None:
    """Send newly final tokens to their streams."""
    for request, tokens in updates:
        # After the death of an engine, another one decodes the same tokens from the beginning.
        if request.on_progress is not None and len(tokens) > request.num_streamed:
            request.num_streamed = len(tokens)
            request.on_progress(tokens, False)
