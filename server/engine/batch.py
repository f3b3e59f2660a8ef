"""The live requests of an engine: their rows, and the search that decodes each of them.

`Batch` assigns rows to requests; the requests of one kind of search are a `SearchGroup`, in the order of its arrays.
"""

import logging
from collections.abc import Set
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kernels.cache_rows import CacheMoves
from server.engine.decoding.forced_search import ForcedSearch
from server.engine.decoding.native_search import RowSearch
from server.engine.decoding.registry import FORCED, SearchKind
from server.engine.decoding.request_decoder import RequestDecoder
from server.engine.decoding.search import Choice, Search, SearchLimits
from server.engine.kv_cache import CrossKeysValues, RowIndices
from server.engine.model_runner import NO_ROWS, ModelRunner, Prefill, StepOutputs
from server.interface.errors import EngineFailed
from server.interface.request import Completion, FinishReason, Request

_log = logging.getLogger("kvasir.engine")

_MIN_PREFILLED = 4  # fewer tokens cost less as rows of steps that run anyway

_Number = TypeVar("_Number", bound=np.number)


@dataclass(slots=True)
class SearchGroup:
    """Requests of one search and the rows of their beams, `rows` [max_requests, beam_size], which must not move.

    `decoders` holds the `RequestDecoder` of each request with options, None for the others. `num_replaced` counts the
    requests whose decoder replaces candidates, `num_attending` those that record attention.
    """

    search: Search
    rows: RowIndices
    requests: list[Request] = field(default_factory=list)
    decoders: list[RequestDecoder | None] = field(default_factory=list)
    num_replaced: int = 0
    num_attending: int = 0
    awaiting_first_token: set[int] = field(default_factory=set)  # ids of requests with a first token to come
    _rows_address: int = field(init=False)
    _row_search: RowSearch | None = field(init=False)

    def __post_init__(self) -> None:
        self._rows_address = self.rows.ctypes.data
        self._row_search = self.search if isinstance(self.search, RowSearch) else None

    @property
    def is_forced(self) -> bool:
        """Whether the tokens of its requests are forced."""
        return isinstance(self.search, ForcedSearch)

    @property
    def live_rows(self) -> RowIndices:
        """Rows of its requests, [requests, beam_size]; a view."""
        return self.rows[: len(self.requests)]

    def _count(self, decoder: RequestDecoder | None, change: int) -> None:
        if decoder is not None:
            self.num_replaced += change * self._is_replacing(decoder)
            self.num_attending += change * (decoder.attention is not None)

    def _is_replacing(self, decoder: RequestDecoder) -> bool:
        return self.is_forced or decoder.replaces_candidates

    def add(self, request: Request, decoder: RequestDecoder | None) -> int:
        """Add a request and return its index. The caller writes its row to `rows`."""
        self.requests.append(request)
        self.decoders.append(decoder)
        self._count(decoder, 1)
        if request.params.first_token is not None and not self.is_forced:
            self.awaiting_first_token.add(request.id)
        self.search.add(request.params, None if decoder is None else decoder.end_bonus)
        return len(self.requests) - 1

    def remove(self, removed: list[int]) -> None:
        """Remove the requests at these indices, in ascending order; the last ones take their places."""
        num_left = len(self.requests) - len(removed)
        holes = [index for index in removed if index < num_left]
        movers = list(range(num_left, len(self.requests)))
        if len(holes) < len(movers):  # some of the last ones are removed as well
            movers = sorted(set(movers).difference(removed))
        if self.awaiting_first_token:
            self.awaiting_first_token.difference_update([self.requests[index].id for index in removed])
        if self.num_replaced or self.num_attending:
            for index in removed:
                self._count(self.decoders[index], -1)
        for hole, mover in zip(holes, movers, strict=True):
            self.rows[hole] = self.rows[mover]
            self.requests[hole] = self.requests[mover]
            self.decoders[hole] = self.decoders[mover]
        del self.requests[num_left:], self.decoders[num_left:]
        self.search.remove(holes, movers, num_left)

    def rows_with_logits(self) -> list[int]:
        """Return the rows whose logits the next step must return."""
        return [
            row
            for decoder, rows in zip(self.decoders, self.rows, strict=False)
            if decoder is not None and decoder.needs_logits(self.is_forced)
            for row in rows.tolist()
        ]

    @property
    def row_search(self) -> RowSearch | None:
        """The search, if it reads the candidates of the next step itself."""
        return None if self.num_replaced or self.awaiting_first_token else self._row_search

    def observe(self, outputs: StepOutputs) -> None:
        """Let decoders that leave the candidates to the search record the attention of a step, before its choice."""
        if not self.num_attending:
            return
        for index, decoder in enumerate(self.decoders):
            if decoder is not None and not self._is_replacing(decoder):
                decoder.observe(self.search.prefixes(index), self.rows[index], outputs.candidates)

    def step(self, search: RowSearch, outputs: StepOutputs, moves: CacheMoves) -> list[int]:
        """Let `row_search` choose and move the rows; return the indices of finished requests, whose rows are free."""
        return search.step(outputs.candidates, self._rows_address, moves)

    def advance(self, outputs: StepOutputs) -> Choice:
        """Let the search choose among the candidates of a step, replaced where a request has a decoder.

        A request whose decoder failed is finished.
        """
        candidates, num_candidates, rows = outputs.candidates, self.search.num_candidates, self.live_rows
        tokens, log_probs = candidates.tokens[rows, :num_candidates], candidates.log_probs[rows, :num_candidates]
        if not self.num_replaced:
            self._force_first_tokens(tokens, log_probs)
            return self.search.advance(tokens, log_probs)
        if num_candidates > tokens.shape[2]:  # the graph found none, or the vocabulary is smaller
            tokens, log_probs = _padded(tokens, num_candidates, 0), _padded(log_probs, num_candidates, -np.inf)
        for index, decoder in enumerate(self.decoders):
            if decoder is not None and self._is_replacing(decoder):
                decoder.replace_candidates(self.search, index, outputs, rows[index], tokens[index], log_probs[index])
        self._force_first_tokens(tokens, log_probs)
        choice = self.search.advance(tokens, log_probs)
        for index, decoder in enumerate(self.decoders):
            if decoder is not None and decoder.failure is not None:
                choice.finished[index] = True
        return choice

    def _force_first_tokens(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> None:
        """Make the first token, at no cost, the only candidate of requests in their first step."""
        if not self.awaiting_first_token:
            return
        for index, request in enumerate(self.requests):
            first = request.params.first_token
            if first is not None and request.id in self.awaiting_first_token:
                tokens[index, :, 0] = first
                log_probs[index] = -np.inf
                log_probs[index, :, 0] = 0.0
        self.awaiting_first_token.clear()

    def completion(self, index: int) -> Completion:
        """Return the completion of a finished request: its hypotheses, or the error of its decoder."""
        request, decoder = self.requests[index], self.decoders[index]
        try:
            if decoder is not None and decoder.failure is not None:
                raise decoder.failure
            if decoder is not None and self.is_forced:
                hypotheses = [decoder.scored()]
            else:
                hypotheses = self.search.hypotheses(index)
                if decoder is not None:
                    hypotheses = [decoder.annotate(hypothesis) for hypothesis in hypotheses]
        except Exception as error:  # noqa: BLE001 - an unexpected error must not end other requests
            return failed_completions([request], error)[0]
        if not hypotheses:
            failure = EngineFailed("no valid hypothesis: all candidate scores are NaN or -inf")
            return Completion(request, [], FinishReason.CANCELLED, failure)
        return Completion(request, hypotheses, hypotheses[0].finish_reason)


def _padded(candidates: NDArray[_Number], num_candidates: int, fill: float) -> NDArray[_Number]:
    """Return candidates of each row with others behind them; `np.pad` takes ten times as long."""
    requests, beam_size, num_found = candidates.shape
    padded = np.full((requests, beam_size, num_candidates), fill, candidates.dtype)
    padded[:, :, :num_found] = candidates
    return padded


def sorted_logit_rows(groups: list[SearchGroup]) -> RowIndices:
    """Return the rows whose logits the groups need, each once, in order."""
    wanted = {row for group in groups for row in group.rows_with_logits()}
    return np.array(sorted(wanted), np.intp) if wanted else NO_ROWS


def failed_completions(requests: list[Request], error: Exception) -> list[Completion]:
    """Return completions of requests without rows, each with an error of its own."""
    _log.error("requests failed in the engine", extra={"requests": len(requests)}, exc_info=error)
    message = f"the model failed on this request: {type(error).__name__}"
    return [Completion(request, [], FinishReason.CANCELLED, EngineFailed(message)) for request in requests]


@dataclass(frozen=True, slots=True)
class _Prefixed:
    """A request whose target prefix is decoded, and its row; its search has not begun."""

    request: Request
    decoder: RequestDecoder
    row: int


class Batch:
    """Assignment of live requests to rows and searches. The cache follows it."""

    def __init__(self, runner: ModelRunner, limits: SearchLimits) -> None:
        self._runner = runner
        self._cache = runner.cache
        self._limits = limits
        self._groups: dict[SearchKind, SearchGroup] = {}
        self._prefixed: list[_Prefixed] = []
        self._num_rows = 0

    @property
    def groups(self) -> list[SearchGroup]:
        """Groups that have requests."""
        return [group for group in self._groups.values() if group.requests]

    @property
    def num_requests(self) -> int:
        """Number of live requests."""
        return sum(len(group.requests) for group in self._groups.values())

    @property
    def num_rows(self) -> int:
        """Rows of all live requests, including those that a beam request takes after its first step."""
        return self._num_rows

    def has_rows_for(self, request: Request) -> bool:
        """Whether enough rows are free for a request."""
        return self._num_rows + request.params.num_rows <= self._cache.max_rows

    def add(self, request: Request, cross: CrossKeysValues) -> None:
        """Assign a row to a request and begin its forced tokens or its search."""
        params = request.params
        decoder = RequestDecoder.of(params, self._limits.end_token, self._runner.attention_scale)
        kind = FORCED if decoder is not None and decoder.has_forced_tokens else SearchKind.of(params)
        group = self._group(kind)
        # First of all: an error from here on fails the live requests, and this one must be among them.
        index = group.add(request, decoder)
        self._num_rows += params.num_rows
        # The beams share one row until the first step gives them different tokens.
        row = self._cache.begin(request.id, cross, self._runner.start_token)
        group.rows[index] = row
        lists = self._runner.token_lists
        if lists is not None and params.uses_shortlist and (decoder is None or not decoder.reads_all_tokens):
            lists.assign(row, request.source)
        if decoder is not None and decoder.attention is not None:
            decoder.attention.set_keys(self._cache.cross_keys(row, decoder.attention.layer))

    def close_holes(self) -> None:
        """Make the live rows contiguous."""
        moved_to = self._cache.close_holes()
        if moved_to is not None:
            for group in self.groups:
                group.rows[:] = moved_to[group.rows]

    def advance(self, group: SearchGroup, outputs: StepOutputs) -> list[Completion]:
        """Let the search of a group choose, move the cache accordingly, and return the finished requests."""
        group.observe(outputs)
        search, moves = group.row_search, self._cache.moves
        if search is not None and moves is not None:
            finished = group.step(search, outputs, moves)
            if not finished:
                return []
            ended = [group.completion(index) for index in finished]
            self._cache.note_holes()
            self._forget(group, finished)
            return ended
        choice = group.advance(outputs)
        if group.is_forced:
            return self._advance_forced(group, choice)
        self._cache.advance(group.live_rows, choice.tokens, choice.parents, choice.finished, choice.common)
        if not np.count_nonzero(choice.finished):
            return []
        finished = choice.finished.nonzero()[0].tolist()
        ended = [group.completion(index) for index in finished]
        self._remove(group, finished)
        return ended

    def prefill(self) -> list[Completion]:
        """Run the rows of new requests over their forced tokens; return requests that ended with an error.

        A translation to score keeps its last token for the next step, which completes it. Without the means, a token is
        forced in every step, with the same results.
        """
        group = self._groups.get(FORCED)
        if group is None or self._runner.prefill is None:
            return []
        search = group.search
        assert isinstance(search, ForcedSearch), "FORCED is its kind"
        finished: list[int] = []
        for index, decoder in enumerate(group.decoders):
            assert decoder is not None, "forced tokens need a decoder"
            if search.num_decoded(index):
                continue
            forced = decoder.forced_tokens
            num_tokens = len(forced) - bool(group.requests[index].params.forced_target)
            if num_tokens < _MIN_PREFILLED:
                continue
            row = int(group.rows[index, 0])
            self._prefill(self._runner.prefill, row, decoder, num_tokens)
            self._cache.previous_tokens[row] = forced[num_tokens - 1]
            if search.skip(index, num_tokens) or decoder.failure is not None:
                finished.append(index)
        ended = self._end_forced(group, finished)
        self.begin_searches()
        return ended

    def _prefill(self, prefill: Prefill, row: int, decoder: RequestDecoder, num_tokens: int) -> None:
        """Run a row over the first forced tokens, in runs of at most as many as the cache has rows."""
        inputs = np.concatenate([self._cache.previous_tokens[row : row + 1], decoder.forced_tokens])
        with_logits, with_queries = decoder.needs_logits(is_forced=True), decoder.attention is not None
        for start in range(0, num_tokens, self._cache.max_rows):
            tokens = inputs[start : min(start + self._cache.max_rows, num_tokens)]
            decoder.record_forced(start, len(tokens), prefill(row, tokens, with_logits, with_queries))

    def begin_searches(self) -> None:
        """Move the requests whose prefix is decoded to their searches, in the same rows.

        Called after all groups have advanced: a new search has no outputs in this step.
        """
        while self._prefixed:
            prefixed = self._prefixed.pop()
            group = self._group(SearchKind.of(prefixed.request.params))
            group.rows[group.add(prefixed.request, prefixed.decoder)] = prefixed.row

    def remove(self, requests: Set[Request]) -> None:
        """Free the rows of these requests, if they have any."""
        for group in self._groups.values():
            removed = [index for index, request in enumerate(group.requests) if request in requests]
            if removed:
                self._remove(group, removed)

    def clear(self) -> list[Request]:
        """Free every row, in whatever state a failed step left it, and return the requests that were live."""
        requests = [request for group in self._groups.values() for request in group.requests]
        requests += [prefixed.request for prefixed in self._prefixed]
        self._prefixed = []
        self._groups.clear()
        self._num_rows = 0
        self._cache.release(np.arange(self._cache.max_rows))
        return requests

    def _group(self, kind: SearchKind) -> SearchGroup:
        if kind not in self._groups:
            rows = np.zeros((self._limits.max_requests // kind.num_rows, kind.num_rows), np.intp)
            self._groups[kind] = SearchGroup(kind.open(self._limits), rows)
        return self._groups[kind]

    def _advance_forced(self, group: SearchGroup, choice: Choice) -> list[Completion]:
        """Force the next tokens. A forced translation is complete after its last token; a prefix leads to a search."""
        self._cache.previous_tokens[group.live_rows] = choice.tokens
        return self._end_forced(group, choice.finished.nonzero()[0].tolist())

    def _end_forced(self, group: SearchGroup, finished: list[int]) -> list[Completion]:
        """Complete the requests at these indices, or let their searches begin."""
        ended: list[Completion] = []
        rows = group.live_rows
        for index in finished:
            request, decoder = group.requests[index], group.decoders[index]
            assert decoder is not None, "forced tokens need a decoder"
            if request.params.forced_target or decoder.failure is not None:
                ended.append(group.completion(index))
                self._cache.release(rows[index])
                self._num_rows -= request.params.num_rows
            else:
                self._prefixed.append(_Prefixed(request, decoder, int(rows[index, 0])))
        if finished:
            group.remove(finished)
        return ended

    def _remove(self, group: SearchGroup, removed: list[int]) -> None:
        """Free the rows of the requests at these indices, and remove them from their group."""
        self._cache.release(group.rows[removed].ravel())
        self._forget(group, removed)

    def _forget(self, group: SearchGroup, removed: list[int]) -> None:
        """Remove the requests at these indices, whose rows are free, from their group."""
        self._num_rows -= sum([group.requests[index].params.num_rows for index in removed])
        group.remove(removed)
