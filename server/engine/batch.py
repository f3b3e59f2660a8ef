"""The live requests of an engine: their rows, and the search that decodes each of them."""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from server.engine.decoding.registry import FORCED, SearchKind
from server.engine.decoding.request_decoder import RequestDecoder
from server.engine.decoding.request_rows import StepOutputs
from server.engine.decoding.search import Choice, SearchLimits
from server.engine.kv_cache import CrossKeysValues
from server.engine.model_runner import ModelRunner
from server.engine.search_group import SearchGroup
from server.interface.request import Completion, Request


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
        rows = group.live_rows
        self._cache.previous_tokens[rows] = choice.tokens
        if not choice.finished.any():
            return []
        ended: list[Completion] = []
        finished = choice.finished.nonzero()[0].tolist()
        for index in finished:
            request, decoder = group.requests[index], group.decoders[index]
            assert decoder is not None, "forced tokens need a decoder"
            if request.params.forced_target or decoder.failure is not None:
                ended.append(group.completion(index))
                self._cache.release(rows[index])
                self._num_rows -= request.params.num_rows
            else:
                self._prefixed.append(_Prefixed(request, decoder, int(rows[index, 0])))
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
