"""The requests that one search decodes: where their beams lie, and who guides those that have options."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.forced_search import ForcedSearch
from server.engine.decoding.request_decoder import RequestDecoder, RequestRows
from server.engine.decoding.search import Choice, Search
from server.engine.kv_cache import RowIndices, fill_holes
from server.engine.model_runner import NO_ROWS, Candidates
from server.interface.request import Request


@dataclass(slots=True)
class SearchGroup:
    """The requests of one search and where their beams lie: `rows` [max_requests, beam_size].

    `guides` has one for each request that needs one, None for the others. `failures` are those of guides in the last
    step, by place: what an option breaks is its own request.
    """

    search: Search
    rows: RowIndices
    requests: list[Request] = field(default_factory=list)
    guides: list[RequestDecoder | None] = field(default_factory=list)
    num_guided: int = 0
    failures: dict[int, Exception] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        """Whether its requests read given tokens."""
        return isinstance(self.search, ForcedSearch)

    def add(self, request: Request, guide: RequestDecoder | None) -> None:
        """Take a request; its row is to be written to `rows` then."""
        self.requests.append(request)
        self.guides.append(guide)
        self.num_guided += guide is not None
        has_bonus = guide is not None and request.params.options.coverage_penalty
        self.search.add(request.params, guide.coverage_bonus if guide is not None and has_bonus else None)

    def remove(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget the others."""
        holes, movers = fill_holes(is_kept)
        num_left = int(np.count_nonzero(is_kept))
        self.rows[holes] = self.rows[movers]
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self.requests[hole] = self.requests[mover]
            self.guides[hole] = self.guides[mover]
        del self.requests[num_left:], self.guides[num_left:]
        self.num_guided = sum(guide is not None for guide in self.guides)
        self.search.remove(holes, movers, num_left)

    @property
    def num_graph_candidates(self) -> int:
        """How many candidates the graph must find for each row: guides that see whole rows need none of them."""
        return self.search.num_candidates if self.search.takes_graph_candidates else 1

    def rows_with_logits(self) -> list[int]:
        """Rows whose whole distribution the guides want to see in the next step."""
        return [
            row
            for guide, rows in zip(self.guides, self.rows, strict=False)
            if guide is not None and guide.needs_logits(self.reads)
            for row in rows.tolist()
        ]

    def advance(self, candidates: Candidates, logit_rows: RowIndices) -> Choice:
        """Let the search choose among what the step gave, or what guides have made of it. `logit_rows` is sorted."""
        self.failures.clear()
        num_candidates = self.search.num_candidates
        rows = self.rows[: len(self.requests)]
        tokens, log_probs = candidates.tokens[rows, :num_candidates], candidates.log_probs[rows, :num_candidates]
        if self.num_guided:
            missing = num_candidates - tokens.shape[2]  # of a vocabulary smaller than that
            if missing:
                tokens = np.pad(tokens, ((0, 0), (0, 0), (0, missing)))
                log_probs = np.pad(log_probs, ((0, 0), (0, 0), (0, missing)), constant_values=-np.inf)
            for place, guide in enumerate(self.guides):
                if guide is not None:
                    try:
                        self._guide(place, guide, candidates, logit_rows, (tokens[place], log_probs[place]))
                    except Exception as error:  # noqa: BLE001 - whatever it was, it fails this request and nobody else
                        self.failures[place] = error
        choice = self.search.advance(tokens, log_probs)
        if self.failures:
            choice.finished[list(self.failures)] = True
        return choice

    def _guide(
        self,
        place: int,
        guide: RequestDecoder,
        candidates: Candidates,
        logit_rows: RowIndices,
        told: tuple[NDArray[np.int64], NDArray[np.float32]],
    ) -> None:
        """Overwrite what the search would be told of one request."""
        tokens, log_probs = told
        rows = self.rows[place]
        has_logits = guide.needs_logits(self.reads)
        guided = RequestRows(
            tokens,
            log_probs,
            candidates.log_normalizer[rows],
            candidates.logits[np.searchsorted(logit_rows, rows)] if has_logits else None,
            candidates.cross_queries[guide.params.alignment_layer][rows] if guide.needs_attention else None,
        )
        if isinstance(self.search, ForcedSearch):
            tokens[:], log_probs[:] = guide.read(self.search.num_read(place), guided)
            return
        advised, advised_log_probs = guide.advise(self.search.prefixes(place), tokens.shape[1], guided)
        if advised is not tokens:  # the graph's own
            tokens[:], log_probs[:] = 0, -np.inf  # a vocabulary may hold fewer than that
            tokens[:, : advised.shape[1]], log_probs[:, : advised.shape[1]] = advised, advised_log_probs


def sorted_logit_rows(groups: list[SearchGroup]) -> RowIndices:
    """All rows whose distribution somebody wants, each once."""
    wanted = [row for group in groups if group.num_guided for row in group.rows_with_logits()]
    return np.unique(np.array(wanted, np.intp)) if wanted else NO_ROWS
