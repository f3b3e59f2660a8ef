"""Identical sentences are decoded once: what was decoded is kept, and what is being decoded is shared."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from cachetools import LRUCache

from bundle.loading import Bundle
from server.interface.engine_client import EngineClient, EngineStatus, SentenceOutcome
from server.interface.errors import QueueFull
from server.interface.request import Completion, Request, Timings
from server.workers.coalescing import Answer, InFlightRequest, SentenceKey, TokenFanOut, is_finished, landed_or_expired

DEFAULT_MAX_SENTENCES = 10_000
# To read and take apart a call only to refuse it costs a full server a good part of what it could do instead. Where
# fewer sentences than this share were found in the last calls, one of so many calls is looked at all the same.
_USEFUL_SHARE = 1 / 16
_CALLS_A_SAMPLE = 16
_CALLS_AVERAGED = 64
# An answer with attention, or with alternatives to every token, is as large as hundreds without: it counts as several.
_SENTENCE_BYTES = 4096


class SentenceObserver(Protocol):
    """Is told, on the event loop's thread, where answers come from."""

    def sentences(self, outcome: SentenceOutcome, count: int) -> None:
        """So many sentences were answered in this way."""
        ...

    def cache_grew(self, num_sentences: int) -> None:
        """The cache holds so many sentences more than before."""
        ...


class CachedEngineClient:
    """A `EngineClient` that sends another one only sentences whose answer it neither has nor is waiting for.

    It keeps up to `max_sentences` answers, samples not among them, by source tokens and `SentenceParams`, and forgets
    the least recently used one first; large ones count as several. With 0 it hands everything on, identical or not, and
    always what is not to be shared. Methods belong to the event loop's thread. Answers outlive an event loop, nothing
    else does.
    """

    def __init__(self, generator: EngineClient, max_sentences: int, observer: SentenceObserver) -> None:
        self._generator = generator
        self._max_sentences = max_sentences
        self._observer = observer
        self._answers: LRUCache[SentenceKey, Answer] = LRUCache(max_sentences, _size)
        self._flights: dict[SentenceKey, InFlightRequest] = {}
        self._is_draining = False
        self._share_found = 0.0  # of the sentences of a call, here or in flight, averaged over the last calls
        self._num_unread = 0  # calls that found the engine full before they were looked at

    @property
    def bundle(self) -> Bundle:
        """The model of the engine."""
        return self._generator.bundle

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions in the order of the requests; no two share a list.

        A request that streams hears a kept answer at once and whole. In flight it hears what the engine tells of it,
        from the beginning even if it joined late. It joins no flight of which the engine tells nothing, because nobody
        who began it streams: it is decoded again instead, and can then be joined.

        A request expires at its own deadline, and cancelling the awaiting task cancels what nobody else waits for.
        Raises what the engine raises, be it for a call that this one shares a sentence with.
        """
        is_shared = self._max_sentences and all(request.shared for request in requests)
        if not is_shared or self._is_draining:  # a draining engine refuses in its own words
            completions = await self._generator.generate(requests)
            self._observer.sentences("decoded", sum(map(is_finished, completions)))
            return completions
        keys = [(request.source.tobytes(), request.params) for request in requests]
        asked = dict(zip(keys, requests, strict=True))
        cached = {key: self._answers[key] for key in asked if key in self._answers}
        streams = {key for key, request in zip(keys, requests, strict=True) if request.on_progress is not None}
        flights = self._flights_to_share(asked.keys() - cached.keys(), len(asked), streams)
        own = {key: request for key, request in asked.items() if key not in cached and key not in flights}
        if asked:
            self._share_found += (1 - len(own) / len(asked) - self._share_found) / _CALLS_AVERAGED
        if own:
            flights |= dict.fromkeys(own, self._depart(own, streams))
        boarded = set(flights.values())
        for flight in boarded:
            flight.num_calls += 1
        try:
            if streams:
                await asyncio.sleep(0)  # the flight is submitted: a full queue refuses it before anything is told
                for flight in boarded:
                    if flight.task.done():
                        flight.task.result()
                _listen(keys, requests, cached, flights)
            await landed_or_expired(
                {
                    (flights[key].task, request.deadline)
                    for key, request in zip(keys, requests, strict=True)
                    if key in flights
                }
            )
            completions = [
                cached[key].completion(request) if key in cached else flights[key].completion(key, request)
                for key, request in zip(keys, requests, strict=True)
            ]
        finally:
            for flight in boarded:
                self._leave(flight)
        outcomes = Counter[SentenceOutcome](
            "cached" if key in cached else "coalesced"
            for key, completion in zip(keys, completions, strict=True)
            if is_finished(completion) and own.get(key) is not completion.request  # that one was counted as it landed
        )
        for outcome, count in outcomes.items():
            self._observer.sentences(outcome, count)
        return completions

    def check_admission(self) -> None:
        """Raise `QueueFull` where the engine is full and answers kept are of no use.

        While few sentences have been found lately, of calls to a full engine only a sample is looked at.
        """
        try:
            self._generator.check_admission()
        except QueueFull:
            if not self._max_sentences:
                raise
            self._num_unread += 1
            if self._share_found < _USEFUL_SHARE and self._num_unread % _CALLS_A_SAMPLE:
                raise

    def status(self) -> EngineStatus:
        """That of the engine, which sees each sentence once."""
        return self._generator.status()

    async def drain(self, timeout_seconds: float) -> bool:
        """Refuse what is new, answers that are at hand as well, and wait for what runs."""
        self._is_draining = True
        return await self._generator.drain(timeout_seconds)

    def close(self) -> None:
        """Close the engine. May be called from any thread."""
        self._is_draining = True
        self._generator.close()

    def _flights_to_share(
        self, keys: Set[SentenceKey], num_sentences: int, streams: Set[SentenceKey]
    ) -> dict[SentenceKey, InFlightRequest]:
        """Flights that a call of so many sentences joins.

        The engine answers a whole call at once. So a call joins none that is larger than itself: one sentence would
        wait for all of somebody's document. It is decoded again instead, and can then be joined there.
        """
        flights = {key: self._flights[key] for key in keys if key in self._flights}
        return {
            key: flight
            for key, flight in flights.items()
            if len(flight.requests) <= num_sentences and (key not in streams or key in flight.broadcasts)
        }

    def _depart(self, requests: dict[SentenceKey, Request], streams: Set[SentenceKey]) -> InFlightRequest:
        """Send these to the engine in one call. They expire for nobody: who waits for them keeps the time."""
        flight = InFlightRequest(
            {
                key: Request(
                    request.source, request.params, Timings(request.timings.arrived), continues=request.continues
                )
                for key, request in requests.items()
            }
        )
        for key in requests.keys() & streams:
            flight.broadcasts[key] = TokenFanOut()
            flight.requests[key].on_progress = flight.broadcasts[key].tell
        flight.task = asyncio.create_task(self._fly(flight))
        self._flights.update(dict.fromkeys(requests, flight))
        return flight

    async def _fly(self, flight: InFlightRequest) -> dict[SentenceKey, Answer]:
        try:
            completions = await self._generator.generate(list(flight.requests.values()))
        finally:
            self._strike_off(flight)
        answers = {key: Answer.of(completion) for key, completion in zip(flight.requests, completions, strict=True)}
        num_before = len(self._answers)
        finished = [
            key for key, completion in zip(flight.requests, completions, strict=True) if is_finished(completion)
        ]
        # Nobody draws the same seed again; who names one can decode again.
        kept = {key: answers[key] for key in finished if key[1].sampling is None}
        self._answers.update({key: answer for key, answer in kept.items() if _size(answer) <= self._max_sentences})
        self._observer.cache_grew(len(self._answers) - num_before)
        self._observer.sentences("decoded", len(finished))
        return answers

    def _leave(self, flight: InFlightRequest) -> None:
        """One call less waits for a flight; without any it is cancelled."""
        flight.num_calls -= 1
        if flight.task.done():
            if not flight.task.cancelled():
                flight.task.exception()  # else asyncio logs one that nobody was left to be told of
        elif not flight.num_calls:
            self._strike_off(flight)  # now, not when it has ended: nobody may board what is doomed
            flight.task.cancel()

    def _strike_off(self, flight: InFlightRequest) -> None:
        for key in flight.requests:
            if self._flights.get(key) is flight:  # not a smaller one that has taken its place
                del self._flights[key]


def _size(answer: Answer) -> int:
    return max(1, -(-answer.num_bytes // _SENTENCE_BYTES))


def _listen(
    keys: Sequence[SentenceKey],
    requests: Sequence[Request],
    cached: Mapping[SentenceKey, Answer],
    flights: Mapping[SentenceKey, InFlightRequest],
) -> None:
    """Let those of a call that stream hear what is known, and what becomes known."""
    for key, request in zip(keys, requests, strict=True):
        if request.on_progress is None:
            continue
        if key in cached:
            request.on_progress(cached[key].best_token_ids(), True)
        else:
            flights[key].broadcasts[key].join(request.on_progress)
