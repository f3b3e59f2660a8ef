"""One engine: admit, encode, decode, select, retire. Synchronous and deterministic, for one thread.

The life of a request:

1. It waits in the scheduler's queue.
2. `Scheduler.admit` gives it to this engine, with as many others as an encoder run takes, or drops it if it expired or
   was abandoned. More are admitted only when all those encoded before have their rows.
3. The encoder makes its cross keys and values, which wait here until the request's rows are free.
4. It takes one row of the cache, its cross keys and values are written there, and it joins the search that decodes its
   way; from here on it is one line in that search's arrays. One with given tokens reads those first.
5. Every step decodes one token for all live rows. A beam request spreads over its rows after its first step.
6. Its search chooses tokens and parents; the cache moves what has to move.
   Of a request that streams, the tokens that became final are told.
7. When its search says so it is retired: its rows are free, its hypotheses leave with the step's completions.
8. Holes are closed by the last live rows before the next step, unless newcomers have filled them.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.registry import READING, SearchKind
from server.engine.decoding.request_decoder import RequestDecoder
from server.engine.decoding.search import Choice, SearchLimits
from server.engine.kv_cache import CrossKeysValues, RowIndices
from server.engine.model_runner import NO_ROWS, Candidates, ModelRunner
from server.engine.scheduler import AdmissionSource
from server.engine.search_group import SearchGroup, sorted_logit_rows
from server.engine.stream_tracker import StreamTracker
from server.interface.errors import EngineFailed
from server.interface.request import Completion, FinishReason, Request

_log = logging.getLogger("kvasir.engine")


class EngineObserver(Protocol):
    """Is told about every step, on the engine's thread."""

    def step(self, rows: int, seconds: float) -> None:
        """A decoder step over so many rows took so long, choosing and moving included."""
        ...


@dataclass(frozen=True, slots=True)
class _Reader:
    """A request that has read its target prefix, and the row it has done so in."""

    request: Request
    row: int
    guide: RequestDecoder


class Engine:
    """Decodes whatever its scheduler admits. `step` is called in a loop, by one thread."""

    def __init__(
        self,
        runner: ModelRunner,
        scheduler: AdmissionSource,
        limits: SearchLimits,
        clock: Callable[[], float],
        replica: int = 0,
        observer: EngineObserver | None = None,
    ) -> None:
        self._runner = runner
        self._cache = runner.cache
        self._scheduler = scheduler
        self.limits = limits
        self._clock = clock
        self._replica = replica
        self._observer = observer
        self._encoded: deque[tuple[Request, CrossKeysValues]] = deque()
        self._groups: dict[SearchKind, SearchGroup] = {}
        self._have_read: list[_Reader] = []  # in this step, their search is yet to begin
        self._rows_taken = 0  # or to be taken after the first step: all beams of all requests that run
        self._without_a_token: list[Request] = []
        self.progress = StreamTracker()

    def step(self) -> list[Completion]:
        """Admit whoever fits, decode one token for every live row, and return the requests that ended.

        An error in the model fails the requests of this step, as completions that carry it, and never escapes.
        """
        self.progress.found = []
        admission = self._scheduler.admit(self._replica, self._clock(), may_admit=self.may_admit)
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
    def may_admit(self) -> bool:
        """Whether the next step takes newcomers: a row is free, and nobody encoded waits for it."""
        return not self._encoded and self._rows_taken < self._cache.max_rows

    @property
    def num_running(self) -> int:
        """Requests that hold rows here, or will when some are free."""
        return len(self._encoded) + sum(len(group.requests) for group in self._groups.values())

    @property
    def num_rows_taken(self) -> int:
        """Rows of the requests that run, those included that a beam request takes after its first step."""
        return self._rows_taken

    def _groups_at_work(self) -> list[SearchGroup]:
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
        while self._encoded and self._rows_taken + self._encoded[0][0].params.num_rows <= self._cache.max_rows:
            request, cross = self._encoded.popleft()
            guide = RequestDecoder.of(request.params, self.limits.end_token, self._runner.attention_scale)
            # In its group first: whatever fails from here on, it fails with those that run and is not lost.
            group = self._group(READING if guide is not None and guide.num_to_read else SearchKind.of(request.params))
            group.add(request, guide)
            self._rows_taken += request.params.num_rows
            # All beams lie in one row until the first step tells them apart.
            row = int(self._cache.take(request.id, 1)[0])
            group.rows[len(group.requests) - 1] = row
            self._cache.write_source(row, cross, self._runner.start_token)
            if guide is not None and guide.needs_attention:
                guide.look_at(self._cache.cross_keys(row, request.params.alignment_layer))
            request.timings.seated = now
            self._without_a_token.append(request)
            self.progress.follow(request)

    def _group(self, kind: SearchKind) -> SearchGroup:
        if kind not in self._groups:
            rows = np.zeros((self.limits.max_requests // kind.num_rows, kind.num_rows), np.intp)
            self._groups[kind] = SearchGroup(kind.open(self.limits), rows)
        return self._groups[kind]

    def _decode(self, ended: list[Completion]) -> None:
        """One token for every row. Adds to `ended` group by group, so that an error does not lose who ended before."""
        started = self._clock()
        groups = self._groups_at_work()
        moved_to = self._cache.close_holes()
        if moved_to is not None:
            for group in groups:
                group.rows = moved_to[group.rows]
        num_rows = self._cache.num_rows
        num_candidates = max(group.num_graph_candidates for group in groups)
        guided = [group for group in groups if group.num_guided]
        logit_rows = sorted_logit_rows(guided) if guided else NO_ROWS
        candidates = self._runner.decode(
            num_rows,
            num_candidates,
            bool(guided) or any(group.search.needs_scores for group in groups),
            logit_rows,
            any(guide is not None and guide.needs_attention for group in guided for guide in group.guides),
        )
        self._cache.past_lengths[:num_rows] += 1
        for group in groups:
            ended += self._advance(group, candidates, logit_rows)
        self.progress.look(groups)
        while self._have_read:  # only now: a group must not be asked for a choice of who was not in its step
            self._begin_search(self._have_read.pop())
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
            self.progress.forget(completion.request)
        self._scheduler.retire(self._replica, [completion.request for completion in ended], now)

    def _advance(self, group: SearchGroup, candidates: Candidates, logit_rows: RowIndices) -> list[Completion]:
        """Let a group's search choose, and bring cache and group in line with the choice."""
        num_requests = len(group.requests)
        rows = group.rows[:num_requests]
        choice = group.advance(candidates, logit_rows)
        if group.num_guided and group.reads:
            return self._read_on(group, choice)
        has_finished = choice.finished.any()
        runs_on = np.flatnonzero(~choice.finished) if has_finished else slice(None)
        new_rows = rows[runs_on]
        if group.search.beam_size > 1:
            new_rows = self._cache.select(new_rows, choice.parents[runs_on])
            rows[runs_on] = new_rows
        self._cache.previous_tokens[new_rows] = choice.tokens[runs_on]
        if not has_finished:
            return []
        ended = [self._complete(group, place) for place in np.flatnonzero(choice.finished).tolist()]
        self._remove(group, ~choice.finished)
        return ended

    def _read_on(self, group: SearchGroup, choice: Choice) -> list[Completion]:
        """Given tokens are read in one row; who has read them all is scored, or goes over to its search in this row."""
        rows = group.rows[: len(group.requests)]
        self._cache.previous_tokens[rows] = choice.tokens
        scored: list[Completion] = []
        for place in np.flatnonzero(choice.finished).tolist():
            request, guide, row = group.requests[place], group.guides[place], int(rows[place, 0])
            assert guide is not None, "nobody reads without a guide"
            if request.params.forced_target or place in group.failures:
                scored.append(self._complete(group, place))
                self._cache.release(rows[place])
                self._rows_taken -= request.params.num_rows
            else:
                self._have_read.append(_Reader(request, row, guide))
        if choice.finished.any():
            group.remove(~choice.finished)
        return scored

    def _begin_search(self, reader: _Reader) -> None:
        group = self._group(SearchKind.of(reader.request.params))
        group.add(reader.request, reader.guide)
        group.rows[len(group.requests) - 1] = reader.row

    def _remove(self, group: SearchGroup, is_kept: NDArray[np.bool_]) -> None:
        """Free the rows of the others, and forget them."""
        self._cache.release(group.rows[: len(group.requests)][~is_kept].ravel())
        gone = np.flatnonzero(~is_kept).tolist()
        self._rows_taken -= sum(group.requests[place].params.num_rows for place in gone)
        group.remove(is_kept)

    def _complete(self, group: SearchGroup, place: int) -> Completion:
        """The answer to a request that has finished, or what its options failed with."""
        request, guide = group.requests[place], group.guides[place]
        try:
            if place in group.failures:
                raise group.failures[place]
            if guide is not None and group.reads:
                hypotheses = [guide.scored()]
            else:
                hypotheses = group.search.hypotheses(place)
                if guide is not None:
                    hypotheses = [guide.annotate(hypothesis) for hypothesis in hypotheses]
        except Exception as error:  # noqa: BLE001 - whatever it was, it fails this request and nobody else
            return self._fail([request], error)[0]
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
            self.progress.forget(request)
        return [Completion(request, [], reason) for request, reason in dropped]

    def _abandon(self) -> list[Request]:
        """Free every row, whatever state a step that failed has left it in; returns the requests that ran."""
        requests = [request for group in self._groups.values() for request in group.requests]
        requests += [reader.request for reader in self._have_read]
        self._have_read = []
        self._groups.clear()
        self._rows_taken = 0
        self._without_a_token = []
        self.progress.forget_all()
        self._cache.release(np.arange(self._cache.max_rows))
        return requests

    @staticmethod
    def _fail(requests: list[Request], error: Exception) -> list[Completion]:
        """The completions of requests that hold no rows any more, each with an error of its own."""
        _log.error("a step of %d requests failed", len(requests), exc_info=error)
        message = f"the model failed on this request: {type(error).__name__}"
        return [Completion(request, [], FinishReason.CANCELLED, EngineFailed(message)) for request in requests]
