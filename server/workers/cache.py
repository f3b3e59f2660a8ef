"""Cache of answers: identical sentences are decoded once, and share the request while it is in flight.

`CachedEngineClient` looks each sentence up by its `SentenceKey`: first in the `AnswerStore`, then among the requests in
flight, and sends only the others to the engine.
"""

import asyncio
import time
from array import array
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bundle.loading import Bundle
from server.interface.engine_client import EngineClient, EngineStatus, SentenceOutcome
from server.interface.errors import QueueFull
from server.interface.interruption import yielding_chunks
from server.interface.request import (
    Completion,
    FinishReason,
    Hypothesis,
    Request,
    SentenceParams,
    Timings,
    TokenDetails,
)

# Everything that an answer of one model depends on: the parameters, as a number, and the source tokens. One object of
# bytes is hashed once; a tuple of bytes and parameters is hashed at each of a dozen look-ups.
SentenceKey = bytes

# Approximate sizes in CPython: an entry with default parameters, the objects of other ones.
_PARAMS_BYTES = 512
_TUPLE_BYTES, _REFERENCE_BYTES, _OBJECT_BYTES = 56, 8, 32


class SentenceKeys:
    """Keys of requests: equal for requests with equal answers, and for no others."""

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes` limits the memory of parameters whose number is remembered."""
        self._max_bytes = max_bytes
        self._numbers = count()
        self._prefixes: dict[SentenceParams, bytes] = {}
        self._num_bytes = 0

    def key(self, request: Request) -> SentenceKey:
        """Return the key of a request."""
        prefix = self._prefixes.get(request.params)
        if prefix is None:
            self._num_bytes += _params_bytes(request.params)
            if self._num_bytes > self._max_bytes:
                self._prefixes.clear()  # numbers are never reused: equal requests before and after share nothing
                self._num_bytes = _params_bytes(request.params)
            prefix = self._prefixes[request.params] = next(self._numbers).to_bytes(8)
        return prefix + request.source.tobytes()


def _params_bytes(params: SentenceParams) -> int:
    token_lists = (params.target_prefix, params.required_phrases, params.suppress_phrases, params.forced_target)
    options = params.options.changed()
    return _PARAMS_BYTES + sum(map(_value_bytes, (*token_lists, *options.values())))


def _value_bytes(value: object) -> int:
    if isinstance(value, tuple):
        return _TUPLE_BYTES + sum(_REFERENCE_BYTES + _value_bytes(item) for item in value) if value else 0
    return _OBJECT_BYTES + 4 * len(value) if isinstance(value, str) else _OBJECT_BYTES


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
    for stage in ("admitted", "encoded", "assigned", "first_token", "finished"):
        reached = getattr(shared, stage)
        setattr(timings, stage, max(reached, timings.arrived) if reached else 0.0)


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


_ENTRY_BYTES = 256  # an entry with an empty source, approximately


class AnswerStore:
    """Answers, least recently used first out. `num_bytes` counts keys and answers, approximately."""

    def __init__(self, max_sentences: int, max_bytes: int) -> None:
        self._max_sentences = max_sentences
        self._max_bytes = max_bytes
        self._answers: OrderedDict[SentenceKey, tuple[Answer, int]] = OrderedDict()
        self.num_bytes = 0

    def __len__(self) -> int:
        """Return the number of answers."""
        return len(self._answers)

    def get(self, key: SentenceKey) -> Answer | None:
        """Return the answer of a sentence, which becomes the most recently used one, or None."""
        if (entry := self._answers.get(key)) is None:
            return None
        self._answers.move_to_end(key)
        return entry[0]

    def add(self, key: SentenceKey, answer: Answer) -> None:
        """Add an answer, unless it exceeds the limit by itself, and evict others for it."""
        num_bytes = key_bytes(key) + answer.num_bytes
        self._remove(key)
        if num_bytes > self._max_bytes or not self._max_sentences:
            return
        self._answers[key] = answer, num_bytes
        self.num_bytes += num_bytes
        while self.num_bytes > self._max_bytes or len(self._answers) > self._max_sentences:
            self._remove(next(iter(self._answers)))

    def clear(self) -> None:
        """Remove all answers."""
        self._answers.clear()
        self.num_bytes = 0

    def _remove(self, key: SentenceKey) -> None:
        if (entry := self._answers.pop(key, None)) is not None:
            self.num_bytes -= entry[1]


def key_bytes(key: SentenceKey) -> int:
    """Return the approximate size of a key and its entry. `SentenceKeys` counts the parameters."""
    return _ENTRY_BYTES + len(key)


DEFAULT_MAX_SENTENCES = 10_000
DEFAULT_MAX_BYTES = 64_000_000
# Parsing and segmenting a call before its rejection costs a full server much of its capacity. If the last calls found
# fewer sentences than this share in the cache, only one of so many calls is admitted to a look-up.
_USEFUL_SHARE = 1 / 16
_CALLS_PER_SAMPLE = 16
_CALLS_AVERAGED = 64
_SENTENCES_PER_CHUNK = 500  # some milliseconds
_LISTENERS_PER_CHUNK = 10


class SentenceObserver(Protocol):
    """Receives the origin of answers, on the event loop's thread."""

    def sentences(self, outcome: SentenceOutcome, count: int) -> None:
        """Count sentences with this outcome."""
        ...

    def cache_grew(self, num_sentences: int, num_bytes: int) -> None:
        """Add to the number of sentences in the cache, and to their bytes."""
        ...


class CachedEngineClient:
    """`EngineClient` that sends another client only sentences whose answers are neither cached nor in flight.

    It keeps up to `max_sentences` answers, except samples, by source tokens and `SentenceParams`, which take up to
    `max_bytes`, and evicts the least recently used one first. With 0 sentences it forwards every request, and always
    those that are not `cacheable`. Methods are for the event loop's thread. Only answers outlive an event loop.
    """

    def __init__(
        self,
        engine: EngineClient,
        max_sentences: int,
        observer: SentenceObserver,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self._engine = engine
        self._max_sentences = max_sentences
        self._observer = observer
        self._answers = AnswerStore(max_sentences, max_bytes)
        self._keys = SentenceKeys(max_bytes)
        self._in_flight: dict[SentenceKey, InFlightRequest] = {}
        self._is_draining = False
        self._share_found = 0.0  # share of sentences cached or in flight, averaged over the last calls
        self._num_full = 0  # calls that came while the engine was full

    @property
    def bundle(self) -> Bundle:
        """Bundle of the engine."""
        return self._engine.bundle

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return completions in the order of the requests; no two share a list.

        A request that is followed receives a cached answer at once, and that of one in flight from the beginning, even
        if it joins late. It does not join a request in flight that no call follows: its sentence is decoded again
        instead, and others can join it.

        A request expires at its own deadline, and cancelling the awaiting task cancels the requests that no other call
        shares. Raises the exceptions of the engine, including those of a call that shares a sentence.
        """
        is_cacheable = self._max_sentences and all(request.cacheable for request in requests)
        if not is_cacheable or self._is_draining:  # a draining engine rejects them itself
            completions = await self._engine.generate(requests)
            self._observer.sentences("decoded", sum(map(is_finished, completions)))
            return completions
        keys: list[SentenceKey] = []
        distinct: dict[SentenceKey, Request] = {}
        cached: dict[SentenceKey, Answer] = {}
        async for part in yielding_chunks(requests, _SENTENCES_PER_CHUNK):
            its_keys = list(map(self._keys.key, part))
            keys += its_keys
            distinct.update(zip(its_keys, part, strict=True))
            cached.update((key, answer) for key in its_keys if (answer := self._answers.get(key)) is not None)
        streams = {key for key, request in zip(keys, requests, strict=True) if request.is_followed}
        shared = self._joinable(distinct.keys() - cached.keys(), len(distinct), streams)
        joined = set(shared.values())
        for in_flight in joined:
            in_flight.num_calls += 1
        try:
            own = {key: request for key, request in distinct.items() if key not in cached and key not in shared}
            if distinct:
                self._share_found += (1 - len(own) / len(distinct) - self._share_found) / _CALLS_AVERAGED
            if own:
                started = await self._started(own, streams)
                shared |= dict.fromkeys(own, started)
                joined.add(started)
                started.num_calls += 1
            if streams:
                await asyncio.sleep(0)  # lets the tasks submit: a full queue rejects them before any token is streamed
                for in_flight in joined:
                    if in_flight.task.done():
                        in_flight.task.result()
                await _subscribe(keys, requests, cached, shared)
            await completed_or_expired(
                {
                    (shared[key].task, request.deadline)
                    for key, request in zip(keys, requests, strict=True)
                    if key in shared
                }
            )
            completions = []
            async for pairs in yielding_chunks(list(zip(keys, requests, strict=True)), _SENTENCES_PER_CHUNK):
                completions += [
                    cached[key].completion(request) if key in cached else shared[key].completion(key, request)
                    for key, request in pairs
                ]
        except asyncio.CancelledError:
            # The deadline of the call, maybe; its error has the times until then.
            for key, request in zip(keys, requests, strict=True):
                if key in shared:
                    shared[key].copy_times(key, request)
            raise
        finally:
            for in_flight in joined:
                self._leave(in_flight)
        outcomes = Counter[SentenceOutcome](
            "cached" if key in cached else "coalesced"
            for key, completion in zip(keys, completions, strict=True)
            if is_finished(completion) and own.get(key) is not completion.request  # counted when it completed
        )
        for outcome, num_sentences in outcomes.items():
            self._observer.sentences(outcome, num_sentences)
        return completions

    def check_admission(self) -> None:
        """Raise `QueueFull` if the engine is full and cached answers are unlikely to help.

        While the last calls found few sentences in the cache, only a sample of the calls to a full engine is admitted.
        """
        try:
            self._engine.check_admission()
        except QueueFull:
            if not self._max_sentences:
                raise
            self._num_full += 1
            if self._share_found < _USEFUL_SHARE and self._num_full % _CALLS_PER_SAMPLE:
                raise

    def status(self) -> EngineStatus:
        """Return the engine's status. It counts a shared sentence once."""
        return self._engine.status()

    async def drain(self, timeout_seconds: float) -> bool:
        """Reject new requests, including those with cached answers, and wait for the others."""
        self._is_draining = True
        return await self._engine.drain(timeout_seconds)

    def close(self) -> None:
        """Close the engine. Thread-safe."""
        self._is_draining = True
        self._engine.close()
        self._observer.cache_grew(-len(self._answers), -self._answers.num_bytes)
        self._answers.clear()

    def _joinable(
        self, keys: Set[SentenceKey], num_sentences: int, streams: Set[SentenceKey]
    ) -> dict[SentenceKey, InFlightRequest]:
        """Return the requests in flight that a call of `num_sentences` sentences joins.

        The engine completes a call as a whole. So a call joins no larger one: a sentence would wait for a whole
        document. It is decoded again instead, and other calls can join it.
        """
        in_flight = {key: self._in_flight[key] for key in keys if key in self._in_flight}
        return {
            key: shared
            for key, shared in in_flight.items()
            if len(shared.requests) <= num_sentences and (key not in streams or key in shared.fan_outs)
        }

    async def _started(self, requests: dict[SentenceKey, Request], streams: Set[SentenceKey]) -> InFlightRequest:
        """Send these to the engine in one call, without a deadline: each sharing call observes its own."""
        in_flight = InFlightRequest({})
        async for part in yielding_chunks(list(requests.items()), _SENTENCES_PER_CHUNK):
            for key, request in part:
                if request.deadline is None and not request.is_followed:
                    in_flight.requests[key] = request
                    continue
                in_flight.requests[key] = Request(
                    request.source,
                    request.params,
                    Timings(request.timings.arrived),
                    accepted_earlier=request.accepted_earlier,
                    round_of=request.round_of,
                )
        for key in requests.keys() & streams:
            fan_out = in_flight.fan_outs[key] = FanOut()
            in_flight.requests[key].on_progress = fan_out.send
            in_flight.requests[key].on_completed = fan_out.complete
        in_flight.task = asyncio.create_task(self._complete(in_flight))
        self._in_flight.update(dict.fromkeys(requests, in_flight))
        return in_flight

    async def _complete(self, in_flight: InFlightRequest) -> dict[SentenceKey, Answer]:
        try:
            completions = await self._engine.generate(list(in_flight.requests.values()))
        finally:
            self._remove(in_flight)
        answers: dict[SentenceKey, Answer] = {}
        async for part in yielding_chunks(
            list(zip(in_flight.requests.items(), completions, strict=True)), _SENTENCES_PER_CHUNK
        ):
            num_before, bytes_before, num_finished = len(self._answers), self._answers.num_bytes, 0
            for (key, request), completion in part:
                answers[key] = answer = Answer.of(completion)
                in_flight.completions[key] = completion
                if is_finished(completion):
                    num_finished += 1
                    # Samples are not kept: a drawn seed does not occur again.
                    if request.params.sampling is None:
                        self._answers.add(key, answer)
            self._observer.cache_grew(len(self._answers) - num_before, self._answers.num_bytes - bytes_before)
            self._observer.sentences("decoded", num_finished)
        return answers

    def _leave(self, in_flight: InFlightRequest) -> None:
        """Remove one call from a request in flight; without any it is cancelled."""
        in_flight.num_calls -= 1
        if in_flight.task.done():
            if not in_flight.task.cancelled():
                in_flight.task.exception()  # marks it as retrieved, otherwise asyncio logs it
        elif not in_flight.num_calls:
            self._remove(in_flight)  # before cancelling: no call may join a cancelled request
            in_flight.task.cancel()

    def _remove(self, in_flight: InFlightRequest) -> None:
        for key in in_flight.requests:
            if self._in_flight.get(key) is in_flight:  # a smaller one may have replaced it
                del self._in_flight[key]


async def _subscribe(
    keys: Sequence[SentenceKey],
    requests: Sequence[Request],
    cached: Mapping[SentenceKey, Answer],
    shared: Mapping[SentenceKey, InFlightRequest],
) -> None:
    """Subscribe the requests of a call that are followed to their tokens and completions, past and future."""
    async for part in yielding_chunks(list(zip(keys, requests, strict=True)), _LISTENERS_PER_CHUNK):
        for key, request in part:
            if not request.is_followed:
                continue
            if key in cached:
                cached[key].completion(request).report()
            else:
                shared[key].fan_outs[key].subscribe(request)
