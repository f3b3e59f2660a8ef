"""Delivery of results to the event loops of their calls."""

from collections.abc import Mapping, Sequence

from server.engine.stream_tracker import StreamUpdate
from server.interface.request import Completion
from server.workers.pending_call import PendingCall


def settle(settled: Mapping[PendingCall, Sequence[Completion]]) -> None:
    """Add completions to their calls, and send the whole answer to streaming requests."""
    for call, completions in settled.items():
        streamed = [each for each in completions if each.request.on_progress is not None and each.hypotheses]
        new = [each for each in streamed if not call.has_completed(each.request)]
        call.add(completions)
        for each in new:
            if each.request.on_progress is not None:
                each.request.on_progress(each.hypotheses[0].token_ids, True)


def stream(updates: list[StreamUpdate]) -> None:
    """Send newly final tokens to their streams."""
    for request, tokens in updates:
        # After the death of an engine, another one decodes the same tokens from the beginning.
        if request.on_progress is not None and len(tokens) > request.num_streamed:
            request.num_streamed = len(tokens)
            request.on_progress(tokens, False)
