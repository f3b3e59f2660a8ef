"""An engine without a thread of its own: its owner steps it between other work."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from bundle.loading import Bundle
from server.engine.decoding.search import SearchLimits
from server.engine.engine import Engine, EngineObserver, warm_up
from server.engine.model_runner import ModelRunner
from server.engine.runners.registry import open_runners
from server.engine.scheduler import ArrivalQueue
from server.interface.engine_client import EngineStatus
from server.interface.errors import Draining
from server.interface.request import Completion, Request, check_all_tokens
from server.interface.word_tokens import NO_WORDS, WordTokens
from server.text.tokenizers.registry import word_tokens_of

# Admitted at once, in encoder runs: sentences of similar length share a run, and more of them fill theirs.
_RUNS_PER_ADMISSION = 4


class SteppedEngine:
    """`EngineClient` whose engine runs only inside `step`, on the thread of the event loop.

    A program that has one processor for texts and engine loses nothing to threads that wait for each other. It has no
    limit on waiting requests, no deadlines and no streams.
    """

    def __init__(
        self,
        bundle: Bundle,
        runner: ModelRunner,
        max_admitted_tokens: int,
        observer: EngineObserver | None = None,
        words: WordTokens = NO_WORDS,
    ) -> None:
        """Decode a first sentence. Sentences of `max_admitted_tokens` source tokens are admitted, and encoded, at once.

        Raises `EngineFailed`.
        """
        self.bundle = bundle
        self._queue = ArrivalQueue(max_admitted_tokens)
        limits = SearchLimits.of(bundle.config, runner.cache.max_rows, words)
        self._engine = Engine(runner, self._queue, limits, time.monotonic, observer=observer)
        self._calls: dict[int, _Call] = {}
        self._is_draining = False
        warm_up(self._engine, self._queue.add)

    @classmethod
    def open(
        cls, bundle: Bundle, max_rows: int, max_encoder_tokens: int, observer: EngineObserver | None = None
    ) -> Self:
        """Load the graphs of a bundle. Raises `BundleError` and `EngineFailed`."""
        (runner,) = open_runners(
            bundle, "cpu", replicas=1, threads=1, max_rows=max_rows, max_encoder_tokens=max_encoder_tokens
        )
        max_admitted_tokens = _RUNS_PER_ADMISSION * max_encoder_tokens
        return cls(bundle, runner, max_admitted_tokens, observer, word_tokens_of(bundle))

    @property
    def has_work(self) -> bool:
        """Whether a step would decode anything."""
        return bool(self._engine.num_running or not self._queue.is_empty)

    def step(self) -> bool:
        """Decode one token for every live row; return whether a call of `generate` is complete."""
        has_complete_call = False
        for completion in self._engine.step().completions:
            call = self._calls.pop(completion.request.id, None)
            if call is not None:
                has_complete_call |= call.add(completion)
        return has_complete_call

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return completions in the order of the requests; other code must call `step` meanwhile."""
        if self._is_draining:
            raise Draining("the engine is closed")
        if not requests:
            return []
        check_all_tokens(requests, self.bundle.config.shapes)
        call = _Call(len(requests), asyncio.get_running_loop().create_future())
        self._calls.update((request.id, call) for request in requests)
        self._queue.add(requests)
        try:
            await call.is_complete
        except BaseException:
            self._queue.drop([request.id for request in requests if self._calls.pop(request.id, None) is not None])
            raise
        completions = call.completions
        for completion in completions.values():
            if completion.error is not None:
                raise completion.error
        return [completions[request.id] for request in requests]

    def check_admission(self) -> None:
        """Do nothing; the queue has no limit."""

    def status(self) -> EngineStatus:
        """Raise NotImplementedError: no server has this engine."""
        raise NotImplementedError

    async def drain(self, timeout_seconds: float) -> bool:
        """Reject new requests; return whether no other is left."""
        self._is_draining = True
        return not self._calls

    def close(self) -> None:
        """Reject new requests."""
        self._is_draining = True


@dataclass(slots=True)
class _Call:
    """Completions of the requests of one call, by request id."""

    num_missing: int
    is_complete: "asyncio.Future[None]"
    completions: dict[int, Completion] = field(default_factory=dict)

    def add(self, completion: Completion) -> bool:
        """Add the completion of a request; return whether it was the last one."""
        self.completions[completion.request.id] = completion
        self.num_missing -= 1
        if self.num_missing:
            return False
        if not self.is_complete.done():
            self.is_complete.set_result(None)
        return True
