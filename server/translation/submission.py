"""Requests to the engine and back: all of a round in one call, with failures as errors and times as phases."""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain

from server.interface.engine_client import EngineClient
from server.interface.errors import DeadlineExceeded, Draining, EngineFailed
from server.interface.request import Completion, FinishReason, Hypothesis, Request, Timings
from server.translation.execution import Deadline
from server.translation.types import Phases, TokenCounts, longest

_SENTENCES_PER_TURN = 1000


class Submission:
    """Submits the requests of one call, in one round or several, and sums their times.

    Requests of a call that was accepted earlier are not rejected if the queue is full, nor are those of further rounds.
    """

    def __init__(
        self, engine: EngineClient, deadline: Deadline, arrived: float, *, accepted_earlier: bool = False
    ) -> None:
        self._engine = engine
        self._deadline = deadline
        self._begun = arrived
        self._accepted_earlier = accepted_earlier
        self._phases: list[Phases] = []
        self._tokenize_seconds = 0.0
        self._round_of: float | None = None
        self._submitted = arrived

    async def submit(self, *blocks: Sequence[Request]) -> dict[int, Completion]:
        """Return completions by request id, in the order of the requests; each has a hypothesis.

        The engine takes blocks in their order. Raises `DeadlineExceeded`, and the errors of `EngineClient.generate`.
        """
        now = self._submitted = self._deadline.clock()
        self._tokenize_seconds = now - self._begun
        requests = list(chain.from_iterable(blocks))
        try:
            completions = await self._completions(blocks, requests, now) if requests else {}
        except (DeadlineExceeded, asyncio.CancelledError) as ended:
            elapsed = self._deadline.clock() - now
            self._deadline.add_round(_unfinished_phases(self._tokenize_seconds, requests, elapsed))
            if isinstance(ended, DeadlineExceeded):
                raise self._deadline.error from ended
            raise
        self._add_round(completions)
        return completions

    def part(self, completions: Mapping[int, Completion]) -> "Submission":
        """Return the submission of further rounds of a block, while other blocks may be in their first."""
        deadline = replace(self._deadline, phases=None)
        part = Submission(self._engine, deadline, self._begun, accepted_earlier=True)
        part._tokenize_seconds = self._tokenize_seconds
        part._round_of = self._submitted
        part._add_round(completions)
        return part

    def join(self, parts: Iterable["Submission"]) -> None:
        """Take the times of all parts, whose rounds ran at the same time and may have been interrupted."""
        if not self._phases:
            return  # the first round was interrupted, and has all of the time
        for part in parts:
            self._phases = [longest(self.phases, part.phases)]
            if self._deadline.phases is not None and part._deadline.phases is not None:
                self._deadline.phases = longest(self._deadline.phases, part._deadline.phases)

    @property
    def phases(self) -> Phases:
        """The times of all rounds together."""
        return reduce(Phases.then, self._phases)

    def next_round(self) -> None:
        """Begin another round of the same call."""
        self._begun = self._deadline.clock()
        self._accepted_earlier = True

    def _add_round(self, completions: Mapping[int, Completion]) -> None:
        phases = _phases(self._tokenize_seconds, completions)
        self._phases.append(phases)
        self._deadline.add_round(phases)

    async def _completions(
        self, blocks: Iterable[Sequence[Request]], requests: Sequence[Request], now: float
    ) -> dict[int, Completion]:
        for request in requests:
            request.timings.arrived = now
            request.accepted_earlier = self._accepted_earlier
            request.round_of = self._round_of
        # Sentences of similar length share an encoder run with little padding, and long ones take longest to decode.
        longest_first = [sorted(block, key=lambda request: len(request.source), reverse=True) for block in blocks]
        by_id: dict[int, Completion] = {}
        completions = await self._engine.generate(list(chain.from_iterable(longest_first)))
        for begin in range(0, len(completions), _SENTENCES_PER_TURN):
            if begin:
                await asyncio.sleep(0)
            for completion in completions[begin : begin + _SENTENCES_PER_TURN]:
                self._check(completion)
                by_id[completion.request.id] = completion
        return {request.id: by_id[request.id] for request in requests}

    def _check(self, completion: Completion) -> None:
        if completion.error is not None:
            raise EngineFailed("the engine failed on this request; the log has the cause") from completion.error
        if completion.finish_reason is FinishReason.DEADLINE:
            raise self._deadline.error
        if not completion.hypotheses:
            raise Draining("the server stopped before this request was finished; send it again")


def num_tokens(hypothesis: Hypothesis) -> int:
    """Return the number of generated tokens: the end-of-sequence token counts where it was generated."""
    return len(hypothesis.token_ids) + (hypothesis.finish_reason is FinishReason.STOP)


def mean_score(scores: Sequence[float], lengths: Sequence[int]) -> float:
    """Return the mean score of sentences, weighted by their lengths; NaN without sentences.

    Sentences that a limit ended before their first token have the same weight.
    """
    if not any(lengths):
        lengths = [1] * len(scores)
    return sum([score * length for score, length in zip(scores, lengths, strict=True)]) / (sum(lengths) or math.nan)


def sentence_tokens(completions: Iterable[Completion]) -> TokenCounts:
    """Count the source and target tokens of sentences."""
    return TokenCounts.of([(len(done.request.source), num_tokens(done.hypotheses[0])) for done in completions])


def _phases(tokenize_seconds: float, completions: Mapping[int, Completion]) -> Phases:
    if not completions:
        return Phases(tokenize_seconds)
    timings = [completion.request.timings for completion in completions.values()]
    return Phases(
        tokenize_seconds,
        max([timing.queue_seconds for timing in timings]),
        max([timing.encode_seconds for timing in timings]),
        max([timing.decode_seconds for timing in timings]),
        max([timing.first_token - timing.arrived for timing in timings]),
    )


def _unfinished_phases(tokenize_seconds: float, requests: Iterable[Request], seconds: float) -> Phases:
    """Return the phases of a round that ended early, `seconds` after its submission.

    Decoding begins with the first sentence that was admitted, and includes its encoder run: engines in processes report
    the time of that with the answer.
    """
    timings = [request.timings for request in requests]
    begun = [timing.admitted - timing.arrived for timing in timings if timing.admitted and _used_rows(timing)]
    queue_seconds = min([*begun, seconds])
    return Phases(tokenize_seconds, queue_seconds, 0.0, seconds - queue_seconds)


def _used_rows(timing: Timings) -> bool:
    return bool(timing.assigned) or not timing.first_token  # a sentence that was cached has its first token at once
