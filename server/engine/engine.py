"""One engine: schedule, encode, decode, search, retire. Synchronous and deterministic, for one thread.

The life of a request:

1. It waits in the scheduler's queue.
2. `Scheduler.admit` gives it to this engine, together with as many others as fit an encoder run, or drops it if it
   expired or was cancelled. More are admitted only when all requests encoded before have their rows.
3. The encoder computes its cross keys and values, which wait in the engine until enough rows are free.
4. `Batch` assigns one cache row to it, writes its cross keys and values there, and adds it to a search; from then on it
   is one line in the arrays of that search. Forced tokens are decoded first, at once where the runner can do that.
5. Every step decodes one token for all live rows. A beam request spreads over its rows after its first step.
6. Its search chooses tokens and parents; the cache moves rows accordingly. For a streaming request, `StreamTracker`
   reports the tokens that became final.
7. When its search finishes it, its rows are free and its hypotheses leave with the completions of the step.
8. Before the next step the last live rows move into the free rows that no new request has taken.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol

import numpy as np

from server.engine.batch import Batch, SearchGroup, failed_completions, sorted_logit_rows
from server.engine.decoding.search import SearchLimits
from server.engine.kv_cache import CrossKeysValues
from server.engine.model_runner import ModelRunner, StepOutputs
from server.engine.scheduler import AdmissionSource
from server.interface.request import Completion, FinishReason, Hypothesis, Request, SentenceParams, Timings


class StepGuard:
    """Context manager that turns an exception into failed completions, appended to `ended`.

    `take_requests` is called after an exception; it returns the requests that fail with it and releases what they hold.
    """

    __slots__ = ("_ended", "_take_requests")

    def __init__(self, ended: list[Completion], take_requests: Callable[[], list[Request]]) -> None:
        self._ended = ended
        self._take_requests = take_requests

    def __enter__(self) -> None:
        """Do nothing; the exit does the work."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Suppress an `Exception`; others pass."""
        if not isinstance(error, Exception):
            return False
        self._ended += failed_completions(self._take_requests(), error)
        return True


class StreamUpdate(NamedTuple):
    """Tokens with which the answer of a running request begins, its target prefix included."""

    request: Request
    token_ids: list[int]


class StreamTracker:
    """Streaming requests of one engine, and how many of their tokens were reported. Free without such requests."""

    def __init__(self) -> None:
        self._num_streamed: dict[Request, int] = {}

    def add(self, request: Request) -> None:
        """Follow a request that has its rows, if it streams."""
        if request.on_progress is not None:
            self._num_streamed[request] = 0

    def remove(self, request: Request) -> None:
        """Stop following a request that ended."""
        if self._num_streamed:
            self._num_streamed.pop(request, None)

    def clear(self) -> None:
        """Stop following all requests."""
        self._num_streamed.clear()

    @property
    def num_followed(self) -> int:
        """Number of streaming requests."""
        return len(self._num_streamed)

    def updates(self, groups: Sequence[SearchGroup]) -> list[StreamUpdate]:
        """Return the running requests of which more tokens became final in this step."""
        found: list[StreamUpdate] = []
        if not self._num_streamed:
            return found
        for group in groups:
            if group.is_forced:
                continue
            for index, request in enumerate(group.requests):
                if request not in self._num_streamed:
                    continue
                tokens = group.search.final_tokens(index)
                if len(tokens) > self._num_streamed[request]:
                    self._num_streamed[request] = len(tokens)
                    found.append(StreamUpdate(request, [*request.params.target_prefix, *tokens.tolist()]))
        return found


class EngineObserver(Protocol):
    """Receives the size and duration of every step, on the engine's thread."""

    def step(self, rows: int, seconds: float) -> None:
        """Record a decoder step over `rows` rows that took `seconds`, search and cache moves included."""
        ...


@dataclass(slots=True)
class StepResult:
    """Results of one step. `stream_updates` are of requests that have not ended."""

    completions: list[Completion]
    stream_updates: list[StreamUpdate]


@dataclass(slots=True)
class _DecodedStep:
    """A decoder run before the searches have seen its outputs."""

    groups: list[SearchGroup]
    outputs: StepOutputs
    num_rows: int
    started: float


class _Runs:
    """Context manager of every run of the model, which notes whether one has failed."""

    have_failed = False

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self.have_failed = True


class Engine:
    """Decodes the requests that its scheduler admits. One thread calls `step` in a loop."""

    def __init__(
        self,
        runner: ModelRunner,
        scheduler: AdmissionSource,
        limits: SearchLimits,
        clock: Callable[[], float],
        replica: int = 0,
        observer: EngineObserver | None = None,
    ) -> None:
        self.limits = limits
        self._runner = runner
        self._scheduler = scheduler
        self._clock = clock
        self._replica = replica
        self._observer = observer
        self._admitted: list[Request] = []  # in this step
        self._encoded: deque[tuple[Request, CrossKeysValues]] = deque()  # waiting for rows
        self._batch = Batch(runner, limits)
        self._without_token: list[Request] = []
        self._streams = StreamTracker()
        self._runs = _Runs()

    def step(self) -> StepResult:
        """Decode one token for every live row.

        An exception of the model ends the requests of this step, as completions with an error, and is not raised.
        """
        dropped = self._schedule()
        ended: list[Completion] = []  # filled as requests end: an exception later in the step must not lose them
        self._encode(ended)
        decoded = self._decode(ended)
        updates = self._search(decoded, ended)
        return self._retire(dropped, ended, updates)

    @property
    def may_admit(self) -> bool:
        """Whether the next step may admit requests: a row is free, and no encoded request waits for it."""
        return not self._encoded and self._batch.num_rows < self._runner.cache.max_rows

    @property
    def num_running(self) -> int:
        """Requests that have rows or wait for them."""
        return len(self._encoded) + self._batch.num_requests

    @property
    def num_rows_taken(self) -> int:
        """Rows of running requests, including those that a beam request takes after its first step."""
        return self._batch.num_rows

    @property
    def num_streams(self) -> int:
        """Streaming requests that have rows."""
        return self._streams.num_followed

    def _schedule(self) -> list[Completion]:
        """Take the admitted requests; free the rows of requests that the scheduler dropped."""
        now = self._clock()
        admission = self._scheduler.admit(self._replica, now, may_admit=self.may_admit)
        self._admitted = admission.admitted
        if not admission.dropped:
            return []
        requests = {request for request, _ in admission.dropped}
        self._encoded = deque(waiting for waiting in self._encoded if waiting[0] not in requests)
        self._batch.remove(requests)
        for request in requests:
            request.timings.finished = now
            self._streams.remove(request)
        return [Completion(request, [], reason) for request, reason in admission.dropped]

    def _encode(self, ended: list[Completion]) -> None:
        """Encode the admitted requests in one run, and assign rows in order of arrival."""
        embedded = [request for request in self._admitted if request.params.pooling is not None]
        if embedded:
            self._admitted = [request for request in self._admitted if request.params.pooling is None]
            self._embed(embedded, ended)
        if self._admitted:
            with StepGuard(ended, lambda: self._admitted):
                with self._runs:
                    encoded = self._runner.encode([request.source for request in self._admitted])
                now = self._clock()
                for request in self._admitted:
                    request.timings.encoded = now
                self._encoded.extend(zip(self._admitted, encoded, strict=True))
        if not self._encoded:
            return
        with StepGuard(ended, self._abandon):
            now = self._clock()
            # A beam request at the head blocks the others until its rows are free.
            while self._encoded and self._batch.has_rows_for(self._encoded[0][0]):
                request, cross = self._encoded.popleft()
                self._batch.add(request, cross)
                request.timings.assigned = now
                self._without_token.append(request)
                self._streams.add(request)
            with self._runs:
                ended += self._batch.prefill()

    def _embed(self, requests: list[Request], ended: list[Completion]) -> None:
        """Complete requests for embeddings: they need no rows."""
        with StepGuard(ended, lambda: requests):
            poolings = [request.params.pooling or "mean" for request in requests]
            with self._runs:
                vectors = self._runner.embed([request.source for request in requests], poolings)
            now = self._clock()
            for request, vector in zip(requests, vectors, strict=True):
                request.timings.encoded = request.timings.assigned = request.timings.first_token = now
                hypothesis = Hypothesis([], math.nan, math.nan, FinishReason.STOP, embedding=vector)
                ended.append(Completion(request, [hypothesis], FinishReason.STOP))

    @property
    def has_broken_runner(self) -> bool:
        """Whether a run of the model has failed: its process should start again."""
        return self._runs.have_failed

    @property
    def has_decoder(self) -> bool:
        """Whether the model decodes. Others only embed."""
        return self._runner.has_decoder

    def _decode(self, ended: list[Completion]) -> _DecodedStep | None:
        """Run the decoder over all live rows; None if there are none."""
        groups = self._batch.groups
        if not groups:
            return None
        with StepGuard(ended, self._abandon):
            started = self._clock()
            self._batch.close_holes()
            num_rows = self._runner.cache.num_live
            num_candidates = max([group.search.num_graph_candidates for group in groups])
            with_scores = any(group.num_replaced or group.search.needs_scores for group in groups)
            logit_rows = sorted_logit_rows([group for group in groups if group.num_replaced])
            with_queries = any(group.num_attending for group in groups)
            with self._runs:
                candidates = self._runner.decode(num_rows, num_candidates, with_scores, logit_rows, with_queries)
            return _DecodedStep(groups, StepOutputs(candidates, logit_rows), num_rows, started)
        return None

    def _search(self, decoded: _DecodedStep | None, ended: list[Completion]) -> list[StreamUpdate]:
        """Let every search choose its tokens, and return what became final in streaming requests."""
        updates: list[StreamUpdate] = []
        if decoded is None:
            return updates
        with StepGuard(ended, self._abandon):
            for group in decoded.groups:
                ended += self._batch.advance(group, decoded.outputs)
            updates = self._streams.updates(decoded.groups)
            self._batch.begin_searches()
            now = self._clock()
            for request in self._without_token:
                request.timings.first_token = now
            self._without_token = []
            if self._observer:
                self._observer.step(decoded.num_rows, now - decoded.started)
        return updates

    def _retire(self, dropped: list[Completion], ended: list[Completion], updates: list[StreamUpdate]) -> StepResult:
        """Return the rows of ended requests to the scheduler; it has retired the dropped ones already."""
        if ended:
            now = self._clock()
            for completion in ended:
                completion.request.timings.finished = now
                self._streams.remove(completion.request)
            self._scheduler.retire(self._replica, [completion.request for completion in ended], now)
        return StepResult(dropped + ended, updates)

    def _abandon(self) -> list[Request]:
        """Free everything that live requests hold, and return them."""
        self._without_token = []
        self._streams.clear()
        return self._batch.clear()


def warm_up(engine: Engine, submit: Callable[[Sequence[Request]], object]) -> None:
    """Decode or embed the empty sentence, so that the first request does not pay for one-time work.

    `submit` queues it in the engine's source of requests. Raises `EngineFailed` if the engine cannot decode it.
    """
    source = np.array([engine.limits.end_token], np.int32)
    params = SentenceParams(max_new_tokens=2, pooling=None if engine.has_decoder else "mean")
    submit([Request(source, params, Timings(time.monotonic()))])
    while not (completions := engine.step().completions):
        pass
    if (error := completions[0].error) is not None:
        raise error
