"""Sentences out to the engine and back: all of a call at once, its failures as errors, its times as phases."""

from collections.abc import Collection, Mapping, Sequence

from server.interface.engine_client import EngineClient
from server.interface.errors import DeadlineExceeded, Draining, EngineFailed
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.translation.types import Phases


async def dispatch(
    generator: EngineClient, requests: Sequence[Request], now: float, allowed_seconds: float, continues: bool = False
) -> dict[int, Completion]:
    """Completions by request id, in the order of the requests; every one has a hypothesis.

    What `continues` a call that was taken, and has been waited for, is taken however many wait.

    Raises `DeadlineExceeded`, with the `allowed_seconds` there were, and whatever `EngineClient.generate` raises.
    """
    if not requests:
        return {}
    for request in requests:
        request.timings.arrived = now
        request.continues = continues
    # Sentences of like length share an encoder run with little padding, and long ones take longest to decode.
    longest_first = sorted(requests, key=lambda request: len(request.source), reverse=True)
    completions = {done.request.id: done for done in await generator.generate(longest_first)}
    for completion in completions.values():
        _check(completion, allowed_seconds)
    return {request.id: completions[request.id] for request in requests}


def _check(completion: Completion, allowed_seconds: float) -> None:
    if completion.error is not None:
        raise EngineFailed("the engine failed on this request; the log has the cause") from completion.error
    if completion.finish_reason is FinishReason.DEADLINE:
        raise time_is_up(allowed_seconds)
    if not completion.hypotheses:
        raise Draining("the server stopped before this request was finished; send it again")


def time_is_up(allowed_seconds: float) -> DeadlineExceeded:
    """What a request is told that was allowed so many seconds."""
    return DeadlineExceeded(f"not finished within {allowed_seconds:g} seconds; send less text, or try again later")


def num_tokens(hypothesis: Hypothesis) -> int:
    """Tokens that were generated: the end-of-sequence token counts where it was reached."""
    return len(hypothesis.token_ids) + (hypothesis.finish_reason is FinishReason.STOP)


def sentence_tokens(completions: Collection[Completion]) -> list[tuple[int, int]]:
    """Source and target tokens of every sentence."""
    return [(len(done.request.source), num_tokens(done.hypotheses[0])) for done in completions]


def phases(tokenize_seconds: float, completions: Mapping[int, Completion]) -> Phases:
    """Where the time went."""
    timings = [completion.request.timings for completion in completions.values()]
    return Phases(
        tokenize_seconds,
        max((timing.queue_seconds for timing in timings), default=0.0),
        max((timing.encode_seconds for timing in timings), default=0.0),
        max((timing.decode_seconds for timing in timings), default=0.0),
        max((timing.first_token - timing.arrived for timing in timings), default=0.0),
    )
