"""Cache of answers: identical sentences are decoded once, and share the request while it is in flight."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from bundle.loading import Bundle
from server.interface.engine_client import EngineClient, EngineStatus, SentenceOutcome
from server.interface.errors import QueueFull
from server.interface.loop_turns import in_turns
from server.interface.request import Completion, Request, Timings
from server.workers.answer_store import AnswerStore
from server.workers.coalescing import (
    Answer,
    FanOut,
    InFlightRequest,
    completed_or_expired,
    is_finished,
)
from server.workers.sentence_keys import SentenceKey, SentenceKeys

DEFAULT_MAX_SENTENCES = 10_000
DEFAULT_MAX_BYTES = 64_000_000
# Parsing and segmenting a call before its rejection costs a full server much of its capacity. If the last calls found
# fewer sentences than this share in the cache, only one of so many calls is admitted to a look-up.
_USEFUL_SHARE = 1 / 16
_CALLS_PER_SAMPLE = 16
_CALLS_AVERAGED = 64
_SENTENCES_PER_TURN = 500  # of the event loop: some milliseconds
_LISTENERS_PER_TURN = 10


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
        async for part in in_turns(requests, _SENTENCES_PER_TURN):
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
            async for pairs in in_turns(list(zip(keys, requests, strict=True)), _SENTENCES_PER_TURN):
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
        for outcome, count in outcomes.items():
            self._observer.sentences(outcome, count)
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
        async for part in in_turns(list(requests.items()), _SENTENCES_PER_TURN):
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
        async for part in in_turns(
            list(zip(in_flight.requests.items(), completions, strict=True)), _SENTENCES_PER_TURN
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
    async for part in in_turns(list(zip(keys, requests, strict=True)), _LISTENERS_PER_TURN):
        for key, request in part:
            if not request.is_followed:
                continue
            if key in cached:
                cached[key].completion(request).report()
            else:
                shared[key].fan_outs[key].subscribe(request)
