"""In-flight requests shared by several calls, and answers in a form that can be shared."""

import asyncio
import time
from array import array
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from server.interface.request import (
    Completion,
    FinishReason,
    Hypothesis,
    Request,
    Timings,
    TokenDetails,
)
from server.workers.sentence_keys import SentenceKey

# Approximate sizes: a hypothesis without tokens, a Python number in a list, a pair of two numbers.
_HYPOTHESIS_BYTES, _NUMBER_BYTES, _PAIR_BYTES = 512, 32, 128


class _PackedHypothesis(NamedTuple):
    """A hypothesis with 4 bytes a token, instead of some 36 in a list of numbers. Details are not packed."""

    token_ids: "array[int]"
    log_probability: float
    score: float
    finish_reason: FinishReason
    details: TokenDetails | None
    embedding: NDArray[np.float32] | None

    @classmethod
    def of(cls, hypothesis: Hypothesis) -> Self:
        """Pack a hypothesis."""
        packed = array("i", hypothesis.token_ids)
        return cls(
            packed,
            hypothesis.log_probability,
            hypothesis.score,
            hypothesis.finish_reason,
            hypothesis.details,
            hypothesis.embedding,
        )

    @property
    def num_bytes(self) -> int:
        """Approximate size in memory."""
        total = _HYPOTHESIS_BYTES + self.token_ids.itemsize * len(self.token_ids)
        total += 0 if self.embedding is None else self.embedding.nbytes
        if (details := self.details) is not None:
            total += _NUMBER_BYTES * len(details.log_probabilities) + _PAIR_BYTES * sum(map(len, details.alternatives))
            total += 0 if details.attention is None else details.attention.nbytes
        return total

    def unpack(self) -> Hypothesis:
        """Return the hypothesis with a new list of tokens."""
        return Hypothesis(
            self.token_ids.tolist(),
            self.log_probability,
            self.score,
            self.finish_reason,
            self.details,
            self.embedding,
        )


class Answer(NamedTuple):
    """A completion without its request."""

    hypotheses: tuple[_PackedHypothesis, ...]
    finish_reason: FinishReason
    error: Exception | None

    @classmethod
    def of(cls, completion: Completion) -> Self:
        """Return the answer of a completion."""
        packed = tuple(map(_PackedHypothesis.of, completion.hypotheses))
        return cls(packed, completion.finish_reason, completion.error)

    @property
    def num_bytes(self) -> int:
        """Approximate size in memory."""
        return sum(hypothesis.num_bytes for hypothesis in self.hypotheses)

    def completion(self, request: Request) -> Completion:
        """Return a completion of this request, without time in queue, encoder or decoder."""
        timings = request.timings
        timings.admitted = timings.arrived
        timings.first_token = timings.finished = time.monotonic()
        return Completion(
            request, [hypothesis.unpack() for hypothesis in self.hypotheses], self.finish_reason, self.error
        )


@dataclass(slots=True, eq=False)
class FanOut:
    """Fan-out of streamed tokens and of the completion. A late subscriber first receives what was sent so far."""

    subscribers: list[Request] = field(default_factory=list)
    sent: tuple[list[int], bool] = ([], False)
    completion: Completion | None = None

    def subscribe(self, request: Request) -> None:
        """Add a request, and send it what the others have received."""
        self.subscribers.append(request)
        if any(self.sent) and request.on_progress is not None:
            request.on_progress(*self.sent)
        if self.completion is not None:
            _complete(request, self.completion)

    def send(self, token_ids: list[int], is_complete: bool) -> None:
        """Send tokens of the engine to all subscribers."""
        self.sent = token_ids, is_complete
        for request in self.subscribers:
            if request.on_progress is not None:
                request.on_progress(token_ids, is_complete)

    def complete(self, completion: Completion) -> None:
        """Send the completion of the engine to all subscribers."""
        self.completion = completion
        for request in self.subscribers:
            _complete(request, completion)


def _complete(request: Request, shared: Completion) -> None:
    if request.on_completed is not None:
        own = Answer.of(shared).completion(request)
        _copy_times(shared.request.timings, request.timings)
        request.on_completed(own)


@dataclass(slots=True, eq=False)
class InFlightRequest:
    """Requests sent to the engine in one call, and the number of calls that share them.

    Sentences that were followed from the beginning have a fan-out. `completions` are those of requests that the call
    sent as they are: it receives them itself, and only other calls need answers.
    """

    requests: dict[SentenceKey, Request]
    num_calls: int = 0
    completions: dict[SentenceKey, Completion] = field(default_factory=dict)
    fan_outs: dict[SentenceKey, FanOut] = field(default_factory=dict)
    task: "asyncio.Task[dict[SentenceKey, Answer]]" = field(init=False)

    def completion(self, key: SentenceKey, request: Request) -> Completion:
        """Return the completion of one of the sharing requests, expired if its deadline came first.

        Its timings count the part of each phase after its arrival. Raises the error of the engine.
        """
        if not self.task.done():
            self.copy_times(key, request)
            request.timings.finished = time.monotonic()
            return Completion(request, [], FinishReason.DEADLINE)
        answers = self.task.result()
        if self.requests[key] is request:
            return self.completions[key]
        completion = answers[key].completion(request)
        self.copy_times(key, request)
        return completion

    def copy_times(self, key: SentenceKey, request: Request) -> None:
        """Give one of the sharing requests the times of the shared one, from its own arrival on."""
        _copy_times(self.requests[key].timings, request.timings)


def _copy_times(shared: Timings, timings: Timings) -> None:
    arrived = timings.arrived
    timings.admitted = max(shared.admitted, arrived) if shared.admitted else 0.0
    timings.encoded = max(shared.encoded, arrived) if shared.encoded else 0.0
    timings.assigned = max(shared.assigned, arrived) if shared.assigned else 0.0
    timings.first_token = max(shared.first_token, arrived) if shared.first_token else 0.0
    timings.finished = max(shared.finished, arrived) if shared.finished else 0.0


async def completed_or_expired(awaited: "set[tuple[asyncio.Task[dict[SentenceKey, Answer]], float | None]]") -> None:
    """Wait until each task is done or its deadline has passed; raise the error of a task as soon as it fails."""
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
    """Return whether a completion has an answer, which is reproducible."""
    return completion.error is None and completion.finish_reason not in (FinishReason.CANCELLED, FinishReason.DEADLINE)
