"""Delivery of results to the event loops of their calls."""

from server.engine.stream_tracker import StreamUpdate
from server.interface.request import Completion
from server.workers.pending_call import PendingCall


def settle(settled: dict[PendingCall, list[Completion]]) -> None:
    """Add completions to their calls, and report those of requests that are followed.

    One call in each turn of the event loop. Engines complete many at once, and the loop takes a millisecond for each:
    in between it answers the requests that arrive.
    """
    call = next(iter(settled))
    completions = settled.pop(call)
    if settled:
        call.loop.call_soon(settle, settled)
    followed = [each for each in completions if each.request.is_followed and each.hypotheses]
    new = [each for each in followed if not call.has_completed(each.request)]
    call.add(completions)
    for each in new:
        each.report()


def stream(updates: list[StreamUpdate]) -> None:
    """Send newly final tokens to their streams."""
    for request, tokens in updates:
        # After the death of an engine, another one decodes the same tokens from the beginning.
        if request.on_progress is not None and len(tokens) > request.num_streamed:
            request.num_streamed = len(tokens)
            request.on_progress(tokens, False)
