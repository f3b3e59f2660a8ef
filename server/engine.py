"""One engine: admit, encode, decode, select, retire. Synchronous and deterministic, for one thread.

The life of a request:

1. It waits in the scheduler's queue.
2. `Scheduler.admit` gives it to this engine, with as many others as an encoder run takes, or drops it if it expired or
   was abandoned. More are admitted only when all those encoded before have their rows.
3. The encoder makes its cross keys and values, which wait here until the request's rows are free.
4. It takes one row of the cache, its cross keys and values are written there, and it joins the search that decodes its
   way; from here on it is one line in that search's arrays.
5. Every step decodes one token for all live rows. A beam request spreads over its rows after its first step.
6. Its search chooses tokens and parents; the cache moves what has to move.
   Of a request that streams, the tokens that became final are told.
7. When its search says so it is retired: its rows are free, its hypotheses leave with the step's completions.
8. Holes are closed by the last live rows before the next step, unless newcomers have filled them.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from server.decoding.beam import BeamSearch
from server.decoding.greedy import GreedySearch
from server.decoding.search import Search, SearchLimits
from server.errors import EngineFailed
from server.kv_cache import CrossKeysValues, RowIndices, fill_holes
from server.request import Completion, FinishReason, Hypothesis, Request
from server.runner import Candidates, ModelRunner
from server.scheduler import Scheduler

_log = logging.getLogger(__name__)


class EngineObserver(Protocol):
    """Is told about every step, on the engine's thread."""

    def step(self, rows: int, seconds: float) -> None:
        """A decoder step over so many rows took so long, choosing and moving included."""
        ...


@dataclass(slots=True)
class _Group:
    """The requests of one search and where their beams lie: `rows` [max_requests, beam_size]."""

    search: Search
    rows: RowIndices
    requests: list[Request] = field(default_factory=list)

    def remove(self, is_kept: NDArray[np.bool_]) -> None:
        holes, movers = fill_holes(is_kept)
        num_left = int(np.count_nonzero(is_kept))
        self.rows[holes] = self.rows[movers]
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self.requests[hole] = self.requests[mover]
        del self.requests[num_left:]
        self.search.remove(holes, movers, num_left)


class Engine:
    """Decodes whatever its scheduler admits. `step` is called in a loop, by one thread."""

    def __init__(
        self,
        runner: ModelRunner,
        scheduler: Scheduler,
        limits: SearchLimits,
        clock: Callable[[], float],
        replica: int = 0,
        observer: EngineObserver | None = None,
    ) -> None:
        self._runner = runner
        self._cache = runner.cache
        self._scheduler = scheduler
        self._limits = limits
        self._clock = clock
        self._replica = replica
        self._observer = observer
        self._encoded: deque[tuple[Request, CrossKeysValues]] = deque()
        self._groups: dict[int, _Group] = {}
        self._rows_taken = 0  # or to be taken after the first step: all beams of all requests that run
        self._without_a_token: list[Request] = []
        self._num_told: dict[Request, int] = {}  # tokens of those that stream, while they have rows
        # After a step: the requests that stream and got on without ending, and the tokens their answers begin with.
        self.progress: list[tuple[Request, list[int]]] = []

    def step(self) -> list[Completion]:
        """Admit whoever fits, decode one token for every live row, and return the requests that ended.

        An error in the model fails the requests of this step, as completions that carry it, and never escapes.
        """
        self.progress = []
        can_encode = not self._encoded and self._rows_taken < self._cache.max_rows
        admission = self._scheduler.admit(self._replica, self._clock(), may_admit=can_encode)
        dropped = self._drop(admission.dropped) if admission.dropped else []
        ended: list[Completion] = []
        if admission.admitted:
            try:
                self._encode(admission.admitted)
            except Exception as error:  # noqa: BLE001 - whatever it was, it fails these requests and nobody else
                ended += self._fail(admission.admitted, error)
        try:
            self._seat()
            if self._groups_at_work():
                self._decode(ended)
        except Exception as error:  # noqa: BLE001 - the same, and the loop goes on
            ended += self._fail(self._abandon(), error)
        if ended:
            self._retire(ended)
        return dropped + ended

    @property
    def num_running(self) -> int:
        """Requests that hold rows here, or will when some are free."""
        return len(self._encoded) + sum(len(group.requests) for group in self._groups.values())

    @property
    def num_rows_taken(self) -> int:
        """Rows of the requests that run, those included that a beam request takes after its first step."""
        return self._rows_taken

    def _groups_at_work(self) -> list[_Group]:
        return [group for group in self._groups.values() if group.requests]

    def _encode(self, admitted: list[Request]) -> None:
        encoded = self._runner.encode([request.source for request in admitted])
        now = self._clock()
        for request in admitted:
            request.timings.encoded = now
        self._encoded.extend(zip(admitted, encoded, strict=True))

    def _seat(self) -> None:
        """Give rows to those who wait for them, first come, first served: nobody overtakes a beam request."""
        now = self._clock()
        while self._encoded and self._rows_taken + self._encoded[0][0].params.beam_size <= self._cache.max_rows:
            request, cross = self._encoded.popleft()
            beam_size = request.params.beam_size
            # In its group first: whatever fails from here on, it fails with those that run and is not lost.
            group = self._group(beam_size)
            group.requests.append(request)
            group.search.add(request.params)
            self._rows_taken += beam_size
            # All beams lie in one row until the first step tells them apart.
            row = int(self._cache.take(request.id, 1)[0])
            group.rows[len(group.requests) - 1] = row
            self._cache.write_source(row, cross, self._runner.start_token)
            request.timings.seated = now
            self._without_a_token.append(request)
            if request.on_progress is not None:
                self._num_told[request] = 0

    def _group(self, beam_size: int) -> _Group:
        if beam_size not in self._groups:
            search = GreedySearch(self._limits) if beam_size == 1 else BeamSearch(beam_size, self._limits)
            rows = np.zeros((self._limits.max_requests // beam_size, beam_size), np.intp)
            self._groups[beam_size] = _Group(search, rows)
        return self._groups[beam_size]

    def _decode(self, ended: list[Completion]) -> None:
        """One token for every row. Adds to `ended` group by group, so that an error does not lose who ended before."""
        started = self._clock()
        groups = self._groups_at_work()
        moved_to = self._cache.close_holes()
        if moved_to is not None:
            for group in groups:
                group.rows = moved_to[group.rows]
        num_rows = self._cache.num_rows
        candidates = self._runner.decode(
            num_rows,
            max(group.search.num_candidates for group in groups),
            any(group.search.needs_scores for group in groups),
        )
        self._cache.past_lengths[:num_rows] += 1
        for group in groups:
            ended += self._advance(group, candidates)
        if self._num_told:
            self._note_progress(groups)
        now = self._clock()
        for request in self._without_a_token:
            request.timings.first_token = now
        self._without_a_token = []
        if self._observer:
            self._observer.step(num_rows, now - started)

    def _retire(self, ended: list[Completion]) -> None:
        now = self._clock()
        for completion in ended:
            completion.request.timings.finished = now
            if self._num_told:
                self._num_told.pop(completion.request, None)
        self._scheduler.retire(self._replica, [completion.request for completion in ended], now)

    def _advance(self, group: _Group, candidates: Candidates) -> list[Completion]:
        """Let a group's search choose, and bring cache and group in line with the choice."""
        num_requests, num_candidates = len(group.requests), group.search.num_candidates
        rows = group.rows[:num_requests]
        choice = group.search.advance(
            candidates.tokens[rows, :num_candidates], candidates.log_probs[rows, :num_candidates]
        )
        runs_on = np.flatnonzero(~choice.finished)
        new_rows = rows[runs_on]
        if group.search.beam_size > 1:
            new_rows = self._cache.select(new_rows, choice.parents[runs_on])
            rows[runs_on] = new_rows
        self._cache.previous_tokens[new_rows] = choice.tokens[runs_on]
        if runs_on.size == num_requests:
            return []
        ended = [
            self._complete(group.requests[place], group.search.hypotheses(place))
            for place in np.flatnonzero(choice.finished).tolist()
        ]
        self._remove(group, ~choice.finished)
        return ended

    def _note_progress(self, groups: list[_Group]) -> None:
        """Find what became final of those that stream. Walks over all requests, so only when there is one."""
        for group in groups:
            for place, request in enumerate(group.requests):
                if request not in self._num_told:
                    continue
                tokens = group.search.final_tokens(place)
                if len(tokens) > self._num_told[request]:
                    self._num_told[request] = len(tokens)
                    self.progress.append((request, tokens.tolist()))

    def _remove(self, group: _Group, is_kept: NDArray[np.bool_]) -> None:
        rows = group.rows[: len(group.requests)][~is_kept].ravel()
        self._cache.release(rows)
        self._rows_taken -= rows.size
        group.remove(is_kept)

    @staticmethod
    def _complete(request: Request, hypotheses: list[Hypothesis]) -> Completion:
        if not hypotheses:  # the model said NaN, or that nothing is possible
            failure = EngineFailed("the model holds no answer to this request possible")
            return Completion(request, [], FinishReason.CANCELLED, failure)
        return Completion(request, hypotheses, hypotheses[0].finish_reason)

    def _drop(self, dropped: list[tuple[Request, FinishReason]]) -> list[Completion]:
        """The scheduler has given these up already; free what rows they hold."""
        requests = {request for request, _ in dropped}
        self._encoded = deque(waiting for waiting in self._encoded if waiting[0] not in requests)
        for group in self._groups.values():
            is_kept = np.array([request not in requests for request in group.requests], np.bool_)
            if not is_kept.all():
                self._remove(group, is_kept)
        now = self._clock()
        for request in requests:
            request.timings.finished = now
            self._num_told.pop(request, None)
        return [Completion(request, [], reason) for request, reason in dropped]

    def _abandon(self) -> list[Request]:
        """Free every row, whatever state a step that failed has left it in; returns the requests that ran."""
        requests = [request for group in self._groups.values() for request in group.requests]
        self._groups.clear()
        self._rows_taken = 0
        self._without_a_token = []
        self._num_told.clear()
        self._cache.release(np.arange(self._cache.max_rows))
        return requests

    @staticmethod
    def _fail(requests: list[Request], error: Exception) -> list[Completion]:
        """The completions of requests that hold no rows any more, each with an error of its own."""
        _log.error("a step of %d requests failed", len(requests), exc_info=error)
        message = f"the model failed on this request: {type(error).__name__}"
        return [Completion(request, [], FinishReason.CANCELLED, EngineFailed(message)) for request in requests]
