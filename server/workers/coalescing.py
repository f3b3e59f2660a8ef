"""A sentence on its way through the engine for several who wait, and its answer for whoever asks."""

import asyncio
import time
from array import array
from dataclasses import dataclass, field, fields
from typing import Self

from server.interface.request import (
    Completion,
    FinishReason,
    Hypothesis,
    ProgressListener,
    Request,
    SentenceParams,
    Timings,
    TokenDetails,
)

# All that an answer of one model depends on: the bytes of the source tokens, and how to decode them.
SentenceKey = tuple[bytes, SentenceParams]

# Of what an answer holds, roughly: a hypothesis without tokens, a Python number in a list, a pair of two.
_HYPOTHESIS_BYTES, _NUMBER_BYTES, _PAIR_BYTES = 512, 32, 128

_STATIONS = tuple(station.name for station in fields(Timings) if station.name != "arrived")


@dataclass(frozen=True, slots=True)
class _PackedHypothesis:
    """A hypothesis in 4 bytes a token; as a list of numbers it takes some 36. Details stay as they are."""

    token_ids: "array[int]"
    log_probability: float
    score: float
    finish_reason: FinishReason
    details: TokenDetails | None

    @classmethod
    def of(cls, hypothesis: Hypothesis) -> Self:
        """The same, packed."""
        packed = array("i", hypothesis.token_ids)
        return cls(packed, hypothesis.log_probability, hypothesis.score, hypothesis.finish_reason, hypothesis.details)

    @property
    def num_bytes(self) -> int:
        """About as many as it takes."""
        total = _HYPOTHESIS_BYTES + self.token_ids.itemsize * len(self.token_ids)
        if (details := self.details) is not None:
            total += _NUMBER_BYTES * len(details.log_probabilities) + _PAIR_BYTES * sum(map(len, details.alternatives))
            total += 0 if details.attention is None else details.attention.nbytes
        return total

    def unpack(self) -> Hypothesis:
        """The hypothesis, with a list that is nobody else's."""
        return Hypothesis(self.token_ids.tolist(), self.log_probability, self.score, self.finish_reason, self.details)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a completion says, whoever asked."""

    hypotheses: tuple[_PackedHypothesis, ...]
    finish_reason: FinishReason
    error: Exception | None

    @classmethod
    def of(cls, completion: Completion) -> Self:
        """The answer without its asker."""
        packed = tuple(map(_PackedHypothesis.of, completion.hypotheses))
        return cls(packed, completion.finish_reason, completion.error)

    @property
    def num_bytes(self) -> int:
        """About as many as it takes."""
        return sum(hypothesis.num_bytes for hypothesis in self.hypotheses)

    def best_token_ids(self) -> list[int]:
        """The tokens of the best hypothesis."""
        return self.hypotheses[0].token_ids.tolist()

    def completion(self, request: Request) -> Completion:
        """The answer to this request, without a time in the queue, the encoder or the decoder."""
        timings = request.timings
        timings.admitted = timings.arrived
        timings.first_token = timings.finished = time.monotonic()
        return Completion(
            request, [hypothesis.unpack() for hypothesis in self.hypotheses], self.finish_reason, self.error
        )


@dataclass(slots=True, eq=False)
class TokenFanOut:
    """What is told of one sentence in flight, to everybody who listens; who comes late hears what they missed."""

    listeners: list[ProgressListener] = field(default_factory=list)
    heard: tuple[list[int], bool] = ([], False)

    def join(self, listener: ProgressListener) -> None:
        """Tell this one too from now on, and at once what the others have heard."""
        self.listeners.append(listener)
        if any(self.heard):
            listener(*self.heard)

    def tell(self, token_ids: list[int], is_complete: bool) -> None:
        """What the engine tells."""
        self.heard = token_ids, is_complete
        for listener in self.listeners:
            listener(token_ids, is_complete)


@dataclass(slots=True, eq=False)
class InFlightRequest:
    """Sentences that went to the engine in one call, and how many calls wait for them.

    Those that somebody streamed from the beginning have a broadcast.
    """

    requests: dict[SentenceKey, Request]
    num_calls: int = 0
    broadcasts: dict[SentenceKey, TokenFanOut] = field(default_factory=dict)
    task: "asyncio.Task[dict[SentenceKey, Answer]]" = field(init=False)

    def completion(self, key: SentenceKey, request: Request) -> Completion:
        """What this asker gets: the answer, or its own deadline where that came first. Raises what failed the flight.

        Of each phase it gets the part after its arrival.
        """
        timings = request.timings
        if not self.task.done():
            timings.finished = time.monotonic()
            return Completion(request, [], FinishReason.DEADLINE)
        completion = self.task.result()[key].completion(request)
        for station in _STATIONS:
            reached: float = getattr(self.requests[key].timings, station)
            setattr(timings, station, max(reached, timings.arrived) if reached else 0.0)
        return completion


async def landed_or_expired(awaited: "set[tuple[asyncio.Task[dict[SentenceKey, Answer]], float | None]]") -> None:
    """Return when each task is done or its deadline has passed; raise as soon as one has failed."""
    while True:
        now = time.monotonic()
        awaited = {
            (task, deadline) for task, deadline in awaited if not task.done() and (deadline is None or deadline > now)
        }
        if not awaited:
            return
        timeout = min((deadline - now for _, deadline in awaited if deadline is not None), default=None)
        done, _ = await asyncio.wait(
            {task for task, _ in awaited}, timeout=timeout, return_when=asyncio.FIRST_EXCEPTION
        )
        for task in done:
            task.result()


def is_finished(completion: Completion) -> bool:
    """Whether it holds an answer, which would be the same another time."""
    return completion.error is None and completion.finish_reason not in (FinishReason.CANCELLED, FinishReason.DEADLINE)
