"""Searches by the parameters of a request."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from kernels import searches
from server.engine.decoding.beam_search import BeamSearch
from server.engine.decoding.constrained import ConstrainedBeamSearch
from server.engine.decoding.diverse_beam_search import DiverseBeamSearch
from server.engine.decoding.forced_search import ForcedSearch
from server.engine.decoding.greedy_search import GreedySearch
from server.engine.decoding.independent_search import IndependentSearch
from server.engine.decoding.native_search import NativeBeamSearch, NativeGreedySearch
from server.engine.decoding.search import Search, SearchLimits
from server.interface.request import SentenceParams


@dataclass(frozen=True, slots=True)
class SearchKind:
    """Requests that share one search, with `num_rows` rows each and `num_groups` groups of beams."""

    name: Literal["greedy", "beam", "plain_beam", "diverse", "constrained", "independent", "forced"]
    num_rows: int = 1
    num_groups: int = 1

    @classmethod
    @lru_cache(maxsize=64)  # one value serves many sentences
    def of(cls, params: SentenceParams) -> "SearchKind":
        """Return the kind of search for these parameters."""
        if params.decodes_independently:
            return cls("independent", params.num_hypotheses)
        if params.options.num_beam_groups > 1:
            return cls("diverse", params.beam_size, params.options.num_beam_groups)
        if params.required_phrases or params.required_terms:
            return cls("constrained", params.beam_size)
        if params.beam_size == 1:
            return _GREEDY
        is_plain = params.options.patience == 1.0 and not params.options.coverage_penalty
        return cls("plain_beam" if is_plain else "beam", params.beam_size)

    def open(self, limits: SearchLimits) -> Search:
        """Return a new search without requests."""
        if self.name == "forced":
            return ForcedSearch(limits)
        if self.name == "independent":
            return IndependentSearch(self.num_rows, limits)
        if self.name == "diverse":
            return DiverseBeamSearch(self.num_rows, self.num_groups, limits)
        if self.name == "constrained":
            return ConstrainedBeamSearch(self.num_rows, limits)
        if self.name == "greedy":
            return NativeGreedySearch(limits) if searches.IS_AVAILABLE else GreedySearch(limits)
        if self.name == "plain_beam" and searches.IS_AVAILABLE:
            return NativeBeamSearch(self.num_rows, limits)
        return BeamSearch(self.num_rows, limits)


FORCED = SearchKind("forced")
_GREEDY = SearchKind("greedy")
